"""The errors that a user can cause. Commands print their message alone, without a traceback."""


class MmcorlError(ValueError):
    """A mistake in what the user gave; the message names the value, the limit and the setting to change."""


class PromptTooLong(MmcorlError):
    """A prompt, image tokens included, that does not fit `rollouts.max_prompt_tokens`. It is never cut."""


class PeerLost(MmcorlError):
    """Another agent of the cohort stopped answering."""


class CohortMismatch(MmcorlError):
    """Agents of one cohort disagree on the run, the step or the problems of a step."""
