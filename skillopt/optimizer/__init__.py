"""Changing a skill: how many edits (`schedule`), which (`select`), applying (`update`), remembering (`step_buffer`)."""
