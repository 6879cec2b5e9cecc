"""The README's table of environments is what the registry holds."""

from pathlib import Path

import gymnasium

import agent_envs

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_lists_every_environment_as_it_is() -> None:
    agent_envs.register_envs()
    rows = []
    for env_id in sorted(spec for spec in gymnasium.registry if spec.startswith("agenteval/")):
        with gymnasium.make(env_id) as env:
            core = env.unwrapped
            about = (type(core).__doc__ or "").partition("\n")[0]
            rows.append(f"| `{env_id}` | {len(core.suite.eval_ids)} and a generator | {len(core.tools)} | {about} |")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("| `agenteval/")] == rows
