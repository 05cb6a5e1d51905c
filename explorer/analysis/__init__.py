"""Numbers from a trace: functions of arrays that return arrays, and below them the derivation of each number."""
