"""Simulated users: the person an agent talks to, as a state channel of the environment."""

from agent_envs.users.scripted import ScriptedUser
from agent_envs.users.talk import Reply

__all__ = ["Reply", "ScriptedUser"]
