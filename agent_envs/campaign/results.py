"""The results folder: one record a line, appended durably, readable after a kill at any instant.

``runs.jsonl`` holds one `AgentRun` a line, kept as `agent_envs.campaign.lines` says.

Of several records with one ``run_id`` the first counts, unless its way of ending may be retried (`OUTCOME_TABLE`): then
the next one does.
"""

import warnings
from pathlib import Path

from agent_envs.campaign.lines import Lines, ResultsError
from agent_envs.contract import AgentRun, Evidence, EvidenceError, consequences, read_evidence

RUNS_NAME = "runs.jsonl"


class Results:
    """A results folder.

    Args:
        folder: Where it stands; made when the first record is appended.
    """

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is read or made yet."""
        self.folder = folder
        self.path = folder / RUNS_NAME
        self._lines = Lines(self.path, AgentRun, "its attempt is run again")

    def append(self, run: AgentRun) -> None:
        """Add a record; it is on the disk when this returns.

        Raises:
            ResultsError: The folder can't be written; what stood there is unharmed.
        """
        self._lines.append(run)

    def read(self) -> list[AgentRun]:
        """The record of each run, in the order in which the runs were first written.

        Raises:
            ResultsError: The file can't be read, or a line in the middle is damaged.
        """
        runs: dict[str, AgentRun] = {}
        for number, run in self._lines.numbered():
            known = runs.get(run.run_id)
            if known is None or consequences(known.terminal).retry:
                runs[run.run_id] = run
            else:
                where = f"{self.path}, line {number}"
                warnings.warn(f"{where}: {run.run_id} is recorded a second time; the first counts", stacklevel=2)
        return list(runs.values())

    def evidence_folder(self, run: AgentRun) -> Path:
        """Where a run's evidence is kept.

        Raises:
            EvidenceError: It isn't kept, or the record points out of the results folder.
        """
        place = Path(run.evidence)
        if not run.evidence or place.is_absolute() or ".." in place.parts:
            raise EvidenceError(
                f"{run.run_id}: the record names no folder of evidence in {self.folder}: {run.evidence!r}"
            )
        return self.folder / place

    def evidence(self, run: AgentRun) -> Evidence:
        """A run's evidence, proven to be this run's.

        Raises:
            EvidenceError: It is missing or damaged, or isn't what the run left.
        """
        folder = self.evidence_folder(run)
        evidence = read_evidence(folder)
        if evidence.digest != run.evidence_digest:
            raise EvidenceError(
                f"{folder}: the evidence has the digest {evidence.digest[:12]}, the record of {run.run_id} says "
                f"{run.evidence_digest[:12]}: it was changed, or is another run's"
            )
        return evidence


__all__ = ["RUNS_NAME", "Results", "ResultsError"]
