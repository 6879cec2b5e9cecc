"""Lawful variations of a right run: another honest agent would do it so, and must pass as well.

The generic ones use what holds for every family: a refused call changes nothing, look-ups change nothing, several calls
may be sent at once, and the seed moves phrasing only. The family adds what only it can know.
"""

from collections.abc import Iterator, Mapping

from agent_envs.audit.mutation.mutant import Calls, Family, Mutant
from agent_envs.contract import AgentTask, Call
from agent_envs.episode.tools import Tool

_OTHER_SEEDS = 2


def variations(task: AgentTask, calls: Calls, tools: Mapping[str, Tool], family: Family, seed: int) -> Iterator[Mutant]:
    """Variations of a script as its author wrote it, saved results by name.

    Args:
        task: The task.
        calls: The script.
        tools: The task's tools by name.
        family: What the family says of them.
        seed: Seed of the episodes.
    """

    def variation(operator: str, what: str, varied: Calls, batched: bool = False, at: int = seed) -> Mutant:
        return Mutant(operator, what, varied, at, batched=batched, lawful=True)

    for number in range(1, _OTHER_SEEDS + 1):
        yield variation("other_seed", f"seed {seed + number}", calls, at=seed + number)
    yield variation("parallel", "independent calls in a row are sent as one list", calls, batched=True)
    spare = min(task.limits.steps, task.limits.calls) - len(calls)
    for place, call in enumerate(calls):
        where = f"call {place + 1} ({call.tool})"
        head, tail = calls[:place], calls[place:]
        if call.tool in tools and tools[call.tool].required and spare > 0:
            broken = Call(tool=call.tool, arguments={})
            yield variation("retry", f"{where} is sent without arguments first", (*head, broken, *tail))
        if call.tool in family.LOOKUPS and not call.save and not call.error:
            if spare > 0:
                yield variation("look_twice", where, (*head, call, *tail))
            if place and not calls[place - 1].save:
                earlier = (*calls[: place - 1], call, calls[place - 1], *calls[place + 1 :])
                yield variation("look_earlier", where, earlier)
            yield variation("look_never", where, (*head, *tail[1:]))
    if spare > 1:
        noise = Call(tool="no_such_tool", arguments={"text": "a slip"})
        yield variation("slip", "a tool that doesn't exist is called first", (noise, *calls))
    for operator, what, varied in family.variations(task, calls):
        if len(varied) <= task.limits.steps:
            yield variation(operator, what, varied)
