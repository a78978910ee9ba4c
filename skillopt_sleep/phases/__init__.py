"""The phases of a night. `skillopt_sleep.night` lists them in order; what they share is `context.Night`."""
