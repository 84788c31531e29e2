"""The errors that a user can cause, and the exit codes that tell of them. Commands print the message alone."""

EXIT_FAILED = 1
EXIT_USER_ERROR = 2
EXIT_PEER_LOST = 3
EXIT_INTERRUPTED = 130
"""Exit codes: a failed run, a mistake of the user's, a worker's death that follows from another agent's, Ctrl-C."""


class MmcorlError(ValueError):
    """A mistake in what the user gave; the message names the value, the limit and the setting to change."""


class PromptTooLong(MmcorlError):
    """A prompt, image tokens included, that does not fit `rollouts.max_prompt_tokens`. It is never cut."""


class PeerLost(MmcorlError):
    """Another agent of the cohort stopped answering."""


class CohortMismatch(MmcorlError):
    """Agents of one cohort disagree on the run, the step or the problems of a step."""
