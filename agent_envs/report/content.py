"""What a report says, as data: ``report.json`` is exactly this, and everything printed or drawn is made from it.

A number that isn't known or isn't defined is null here, and is never written as zero.
"""

from typing import Any, Literal

from agent_envs.contract import Model

FORMAT = 1
"""Version of ``report.json``."""

Role = Literal["system", "baseline", "oracle"]


class Estimate(Model):
    """A number with its 95 % interval and what it rests on."""

    value: float | None
    """Null: undefined, see ``note``."""
    low: float | None = None
    high: float | None = None
    n: int = 0
    """Attempts it rests on."""
    tasks: int = 0
    """Tasks it rests on, the clusters of the interval."""
    note: str = ""
    """Why the value or the interval is undefined."""


class Headline(Model):
    """The number the manifest declared, or why it's withheld."""

    metric: str
    """The figure and how it's averaged over tasks: ``macro`` (each alike) or ``weighted`` (by declared weights)."""
    estimate: Estimate
    best: float | None
    """If every planned attempt without a valid result had succeeded."""
    worst: float | None
    """If every one of them had failed."""
    withheld: str
    """Why no headline is given; empty when it is."""


class CurvePoint(Model):
    """One k of a curve."""

    k: int
    estimate: Estimate
    """With the same kind of interval as the headline."""
    band_low: float | None
    """Bootstrap band, tasks drawn again; null where nothing varies between tasks."""
    band_high: float | None
    coverage: float
    """Share of the task weight whose tasks have at least k valid attempts; the value is null below 1."""


class Slice(Model):
    """The valid attempts with one label, or of one length."""

    name: str
    value: str
    estimate: Estimate
    planned: int | None
    """Null where an attempt's slice is known only once it ran."""


class Money(Model):
    """What a system's attempts cost, invalid ones included."""

    known: int
    """Attempts with a known cost."""
    recorded: int
    """Attempts on record."""
    total: float | None
    """US dollars; null unless every recorded attempt's cost is known."""
    known_total: float
    """US dollars over the attempts with a known cost: a lower bound of the total."""
    per_attempt: float | None
    per_success: float | None


class Times(Model):
    """Wall seconds of the valid attempts."""

    mean: float | None
    median: float | None
    p95: float | None
    environment_share: float | None
    """Part spent inside the environment."""
    mean_success: float | None
    mean_failure: float | None
    steps: float | None
    """Mean number of steps."""
    tokens: float | None
    """Mean number of tokens; null unless every valid attempt's is known."""


class Check(Model):
    """One test for drift during the campaign."""

    name: str
    statistic: float | None
    p: float | None
    p_adjusted: float | None
    note: str


class SystemNumbers(Model):
    """Everything measured of one system."""

    name: str
    policy: str
    role: Role
    model: str
    """The system's model, by name; empty when it has none."""
    harness: str
    spec: str
    """Digest of its SystemSpec."""
    planned: int
    valid: int
    invalid: int
    """Attempts on record that don't count."""
    missing: int
    """Planned attempts without a record."""
    retries: int
    """Tries beyond the first, over all attempts."""
    tasks: int
    tasks_covered: int
    coverage: float
    """Weighted share of the planned attempts that are valid."""
    successes: int
    headline: Headline
    macro: Estimate
    """Mean over tasks of the task's success rate."""
    micro: Estimate
    """Mean over attempts."""
    over_valid: float | None
    """Successes over valid attempts."""
    over_planned: float | None
    """Successes over planned attempts: every one without a valid result taken as failed."""
    classes: dict[str, int]
    """Attempts by outcome class, and ``missing``."""
    endings: dict[str, int]
    """Attempts by terminal reason, as ``phase/origin/kind``."""
    right_but_broke_rule: int
    false_claims: int
    pass_at: tuple[CurvePoint, ...]
    """Chance that at least one of k attempts succeeds."""
    pass_hat: tuple[CurvePoint, ...]
    """Chance that all of k attempts succeed."""
    flip_rate: Estimate
    """Share of pairs of attempts at one task that disagree."""
    slices: tuple[Slice, ...]
    lengths: tuple[Slice, ...]
    money: Money
    times: Times
    drift: tuple[Check, ...]


class Difference(Model):
    """A part in which two SystemSpecs differ."""

    path: str
    before: Any
    after: Any


class Comparison(Model):
    """Two systems, paired by task."""

    a: str
    b: str
    kind: str
    """``model comparison`` only when nothing but the model part differs, ``same system twice`` when nothing does, else
    ``system comparison``."""
    differs: tuple[str, ...]
    """Parts of the SystemSpec that differ."""
    differences: tuple[Difference, ...]
    """The first of them, one by one."""
    differences_total: int
    difference: Estimate
    """Success rate of ``b`` less that of ``a``, weighted like the headline."""
    p: float | None
    """Two-sided p of the sign-flip permutation test."""
    exact: bool
    """All sign patterns were counted, not a sample of them."""
    p_holm: float | None
    """Adjusted for all comparisons of the report."""
    won: int
    """Tasks at which b has the higher rate."""
    lost: int
    tied: int
    left_out: int
    """Tasks without a valid attempt of both."""


class Factorial(Model):
    """Models crossed with harnesses."""

    models: tuple[str, ...]
    harnesses: tuple[str, ...]
    cells: tuple[tuple[Estimate, ...], ...]
    """One row a model, one column a harness; mean over the tasks that every cell covers."""
    effects: tuple[tuple[str, Estimate], ...]
    """Main effects and interactions, as deviations from the grand mean."""
    shares: tuple[tuple[str, float], ...]
    """Share of each source in the variance of an attempt's outcome; empty when it can't be estimated."""
    tasks: int
    note: str


class AttemptNote(Model):
    """One attempt worth reading: a failure, or one that couldn't be judged."""

    run_id: str
    system: str
    task_id: str
    attempt: int
    try_number: int
    outcome: str
    ending: str
    why: str
    """The first failed check, or the fault's text."""
    evidence: str
    """Folder of the evidence, relative to the campaign; empty when none was kept."""
    page: str
    """Trajectory page, relative to ``report/``; empty when it has none."""


class Listing(Model):
    """The first attempts of a kind, and how many there are."""

    shown: tuple[AttemptNote, ...]
    total: int


class Analysis(Model):
    """A whole report."""

    format: int
    campaign: str
    """Digest of the lock."""
    name: str
    decision: str
    population: str
    status: Literal["complete", "incomplete", "invalid"]
    status_note: str
    outcome_table: str
    """Version and digest of the table that classed the attempts."""
    metric: str
    """The declared headline, in words."""
    minimum_coverage: float
    attempts: int
    """Planned attempts per task and system."""
    tasks: int
    planned: int
    recorded: int
    systems: tuple[SystemNumbers, ...]
    """In the manifest's order."""
    ranking: tuple[str, ...]
    """Systems with a headline, best first; oracles never."""
    comparisons: tuple[Comparison, ...]
    factorial: Factorial | None
    failures: Listing
    """Valid attempts that failed."""
    invalid: Listing
    """Tries that don't count, each with its reason; a later try of the same attempt may."""
    openings: int | None
    """How often the sealed suite had been opened when this campaign was locked on it, this opening included; null when
    the suite isn't sealed."""
    specs: dict[str, Any]
    """Each system's SystemSpec."""
    notes: tuple[str, ...]
    """What was odd about the records."""
