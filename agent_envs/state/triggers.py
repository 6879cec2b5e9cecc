"""The change journal: triggers on both back ends that note every write, raw SQL included.

A journal entry holds the table's number and whole rows, before and after. The journal is bookkeeping of this package:
it isn't among a fixture's tables and takes no part in digests.
"""

from agent_envs.state.fixture import quoted
from agent_envs.state.schema import Schema

JOURNAL = "agenteval_journal"


def sqlite_triggers(schema: Schema) -> list[str]:
    """Statements for SQLite.

    Values are copied into columns without declared type, which keep them bit for bit; no text form is involved. A
    table of n columns uses c0 to c(n-1) for the row before and the next n for the row after. ``kind`` has bit 1 set
    when there is a row before and bit 2 when there is one after.
    """
    width = 2 * max(len(layout.columns) for layout in schema.layouts)
    slots = "".join(f", c{place}" for place in range(width))
    statements = [f"CREATE TABLE {JOURNAL} (seq INTEGER PRIMARY KEY, number, kind{slots})"]
    for layout in schema.layouts:
        size = len(layout.columns)
        before = [(f"c{place}", f"OLD.{quoted(name)}") for place, name in enumerate(layout.columns)]
        after = [(f"c{place + size}", f"NEW.{quoted(name)}") for place, name in enumerate(layout.columns)]
        for event, kind, values in (("INSERT", 2, after), ("UPDATE", 3, before + after), ("DELETE", 1, before)):
            into = "".join(f", {slot}" for slot, _ in values)
            what = "".join(f", {value}" for _, value in values)
            statements.append(
                f"CREATE TRIGGER agenteval_{event.lower()}_{layout.number} AFTER {event} ON {quoted(layout.name)} "
                "BEGIN "
                f"INSERT INTO {JOURNAL} (number, kind{into}) VALUES ({layout.number}, {kind}{what}); END"
            )
    return statements


def postgresql_triggers(schema: Schema, space: str) -> list[str]:
    """Statements for PostgreSQL.

    Rows are noted as JSON of the type ``json``, which keeps the shortest exact text of a double; ``jsonb`` would turn
    1e300 into three hundred digits. TRUNCATE fires no row triggers, so it is refused.

    Args:
        schema: The tables.
        space: Name of the PostgreSQL schema they are in.
    """
    journal = f"{quoted(space)}.{JOURNAL}"
    note, refuse = f"{quoted(space)}.agenteval_note", f"{quoted(space)}.agenteval_refuse"
    statements = [
        f"CREATE TABLE {journal} (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number int, "
        "before json, after json)",
        f"""CREATE FUNCTION {note}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'INSERT' THEN
                INSERT INTO {journal} (number, after) VALUES (TG_ARGV[0]::int, row_to_json(NEW));
            ELSIF TG_OP = 'UPDATE' THEN
                INSERT INTO {journal} (number, before, after)
                VALUES (TG_ARGV[0]::int, row_to_json(OLD), row_to_json(NEW));
            ELSE
                INSERT INTO {journal} (number, before) VALUES (TG_ARGV[0]::int, row_to_json(OLD));
            END IF;
            RETURN NULL;
        END $$""",
        f"""CREATE FUNCTION {refuse}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'TRUNCATE is not journaled; use DELETE';
        END $$""",
    ]
    for layout in schema.layouts:
        table = f"{quoted(space)}.{quoted(layout.name)}"
        statements.append(
            f"CREATE TRIGGER agenteval_note AFTER INSERT OR UPDATE OR DELETE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {note}({layout.number})"
        )
        statements.append(
            f"CREATE TRIGGER agenteval_refuse BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {refuse}()"
        )
    return statements
