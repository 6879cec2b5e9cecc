"""Options that find out: asking the customer, finding and verifying who calls, looking things up. None moves money."""

from typing import Final

from agent_envs.envs.refund.menu.figures import Figures
from agent_envs.envs.refund.menu.offer import Calls, Option, call, ticket_is_open, when

IDENTITY_FACTS: Final = ("email", "postcode", "birth_date")
REQUEST_FACTS: Final = ("order_id", "items", "condition", "reason")


def ask(text: str, *facts: str) -> Option:
    """Ask for those of the facts that were not asked for yet."""

    def option(known: Figures) -> Calls:
        new = [name for name in facts if name not in known.memory.asked]
        return when(new and known.memory.user == "active", call("send_message", text=text, ask=new))

    return option


def find(fact: str) -> Option:
    """Search customers by a fact that was told."""

    def option(known: Figures) -> Calls:
        value = known.memory.facts.get(fact, "")
        return when(value and fact not in known.memory.searched, call("find_customer", **{fact: value}))

    return option


def verify(place: int, *facts: str) -> Option:
    """Check the first (0) or last (-1) customer found; the last only where there are several."""

    def option(known: Figures) -> Calls:
        memory = known.memory
        if not ticket_is_open(known) or not memory.found or (place and len(memory.found) < 2):
            return []
        told = {name: memory.facts[name] for name in facts if name in memory.facts}
        number = memory.found[place]
        check = call("verify_identity", ticket_id=memory.ticket_id, customer_id=number, **told)
        return when(len(told) == len(facts) and number != known.verified, check)

    return option


def read_policy(known: Figures) -> Calls:
    """Read the policy, once."""
    return when(not known.memory.policy_read, call("read_policy", section="all"))


def get_ticket(known: Figures) -> Calls:
    """Look at the ticket, once."""
    memory = known.memory
    return when(memory.ticket_id and memory.opened is None, call("get_ticket", ticket_id=memory.ticket_id))


def get_customer(known: Figures) -> Calls:
    """Look at the customer found or verified."""
    number = known.candidate
    return when(number and number not in known.memory.tiers, call("get_customer", customer_id=number))


def list_orders(known: Figures) -> Calls:
    """List that customer's orders."""
    number = known.candidate
    return when(number and number not in known.memory.listed, call("list_orders", customer_id=number))


def get_order_mentioned(known: Figures) -> Calls:
    """Look at the order the customer spoke of last."""
    number = known.memory.mentioned
    return when(number and number != known.memory.order_id, call("get_order", order_id=number))


def get_order_listed(known: Figures) -> Calls:
    """Look at the next of the listed orders that was not looked at yet."""
    memory = known.memory
    number = next((number for number in memory.listed.get(known.candidate, ()) if number not in memory.orders), "")
    return when(number, call("get_order", order_id=number))


def look(tool: str, seen: str) -> Option:
    """Look at something of the present order; ``seen`` names where the memory keeps it."""

    def option(known: Figures) -> Calls:
        number = known.memory.order_id
        return when(number and number not in getattr(known.memory, seen), call(tool, order_id=number))

    return option
