"""Numbers from a trace: functions of arrays that return arrays."""
