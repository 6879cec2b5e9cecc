"""``python -m agent_envs.cli``."""

import sys

from agent_envs.cli import main

if __name__ == "__main__":
    sys.exit(main())
