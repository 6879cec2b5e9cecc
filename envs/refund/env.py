"""The refund environment."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import gymnasium

from agent_envs.envs.refund.fixture import fixture
from agent_envs.envs.refund.generator import generate_references, generate_task
from agent_envs.envs.refund.menu import RefundMenu
from agent_envs.envs.refund.scenario import expand
from agent_envs.envs.refund.tools import TOOLS
from agent_envs.envs.refund.world import Office
from agent_envs.episode.env import AgentEnv, Observation
from agent_envs.episode.suite import Suite
from agent_envs.state.database import check_url
from agent_envs.wrappers import compose

SUITE = Suite(
    "refund",
    Path(str(files("agent_envs.envs.refund"))),
    expand=expand,
    generate=generate_task,
    generate_references=generate_references,
)


class RefundEnv(AgentEnv):
    """A retailer's back office: one ticket, one customer on the line, and a written policy.

    ## Description
    The agent works for a retailer. A customer has called; a ticket is open. The agent talks to the customer, looks up
    the account, checks who is calling, decides what the policy allows, moves money or refuses, closes the ticket and
    finishes. The tools do not enforce the policy: doing what it forbids is possible, is recorded, and costs the
    success.

    ## Mission
    The request names the ticket and the rules. What the customer wants comes out in the talk, and may change there.

    ## Action Space
    `ToolCall`: `{"tool": name, "arguments": {...}}`, a JSON text of it, or a list of up to 16 calls.
    `env.action_space.schemas()` gives every tool's JSON Schema.

    | Num | Name | Action |
    |-----|------|--------|
    | 0 | `read_policy` | Read a section of the policy, or all of it |
    | 1 | `get_ticket` | The ticket with its notes |
    | 2 | `find_customer` | Customers by name, e-mail or phone |
    | 3 | `get_customer` | One customer |
    | 4 | `list_orders` | A customer's orders |
    | 5 | `get_order` | One order with its lines and shipments |
    | 6 | `get_payments` | An order's payments with what is left on each |
    | 7 | `get_history` | Past returns, refunds, credits and approvals of an order |
    | 8 | `get_ledger` | An order's ledger entries |
    | 9 | `check_risk` | Whether an order is on hold |
    | 10 | `verify_identity` | Compare facts the caller gave with the account |
    | 11 | `register_return` | Note what comes back, and in what condition |
    | 12 | `request_approval` | Ask for approval of a sum; takes two hours |
    | 13 | `issue_refund` | Pay back to a payment of the order |
    | 14 | `issue_store_credit` | Pay as store credit |
    | 15 | `cancel_order` | Cancel an order that has not been shipped |
    | 16 | `add_note` | Write a note on the ticket |
    | 17 | `hand_over` | Hand the ticket to another team |
    | 18 | `resolve_ticket` | Close the ticket with a decision and a reason |
    | 19 | `send_message` | Talk to the customer: ask, propose, report |
    | 20 | `wait` | Let hours pass |
    | 21 | `finish` | End the work |

    ## Observation Space
    `Dict(text=Unicode(65536))`. After a reset: the request, and the customer's first words as JSON. After a step:
    JSON `{"status": "ok", "result": {...}}`, or `{"status": "error" | "invalid" | "denied" | "timeout", "error":
    "..."}`; a list of them for a list of calls. Long texts are cut in the middle, saying so.

    ## Rewards
    0.0 until the end; then 1.0 if the final state is exactly what the task demands, nothing else was changed and no
    rule was broken, else 0.0.

    ## Starting State
    The same 250 customers and 700 orders in every episode, and the task's own rows. The state hash after a reset is
    the one pinned in the task. Seeds choose the task (when none is named) and the customer's phrasing.

    ## Episode End
    Terminated: `finish`; more than two messages to a customer who has gone (`user_stop`). Truncated: step, call,
    time, token or cost limit; 10 invalid calls or 20 refused calls in a row; a fault of the environment, which
    `env.get_wrapper_attr("run").terminal` names.

    ## Information
    `task_id`, `task_revision`, `step`, `state_hash`, `terminal_reason`, `user` (active, finished, left),
    `is_success`, `verdict`.

    ## Arguments
    `task` (id; empty draws one by seed), `split` (`eval`: curated, `train`: generated without end), `database`
    (`sqlite://` in memory, or `postgresql+psycopg://...`), `record` (folder for evidence), `recheck` (share of verdicts
    made twice), and tighter limits: `steps`, `wall_seconds`, `tokens`, `cost`.

    ## Version History
    * v1: first release.
    """

    suite = SUITE
    tools = TOOLS
    status_keys = ("user",)
    menu = RefundMenu

    def __init__(self, *, database: str = "sqlite://", **arguments: Any) -> None:
        """See the class; ``arguments`` are those of `AgentEnv`."""
        super().__init__(**arguments)
        check_url(database)
        self.arguments["database"] = database

    def make_world(self) -> Office:
        """A new office."""
        return Office(fixture(), self.arguments["database"])


def make(
    *,
    task: str = "",
    split: str = "eval",
    database: str = "sqlite://",
    render_mode: str | None = None,
    record: str = "",
    recheck: float = 0.05,
    **limits: Any,
) -> gymnasium.Env[Observation, Any]:
    """The registered entry point: the environment in its standard dress. Arguments as in `RefundEnv`."""
    core = RefundEnv(task=task, split=split, database=database, render_mode=render_mode)
    return compose(core, record=record, recheck=recheck, **limits)


make.metadata = RefundEnv.metadata  # type: ignore[attr-defined]  # Gymnasium looks for render modes here
