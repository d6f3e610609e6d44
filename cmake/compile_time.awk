# The log of compile_time.sh: CPU seconds of each target, then of the ten dearest objects.
{
  target = $2
  sub(/\.dir\/.*/, "", target)
  sub(/.*CMakeFiles\//, "", target)
  file = $2
  sub(/CMakeFiles\/[^\/]*\.dir\//, "", file)
  sub(/\.o$/, "", file)
  seconds[target] += $1
  objects[target]++
  all += $1
  cost[NR] = $1
  name[NR] = file " (" target ")"
}
END {
  printf "%8s %8s  %s\n", "seconds", "objects", "target"
  while (1) {
    dearest = ""
    for (t in seconds)
      if (dearest == "" || seconds[t] > seconds[dearest]) dearest = t
    if (dearest == "") break
    printf "%8.1f %8d  %s\n", seconds[dearest], objects[dearest], dearest
    delete seconds[dearest]
  }
  printf "%8.1f %8d  %s\n\n%8s  %s\n", all, NR, "all of it", "seconds", "file"
  for (n = 0; n < 10 && n < NR; ++n) {
    dearest = 0
    for (i in cost)
      if (dearest == 0 || cost[i] > cost[dearest]) dearest = i
    printf "%8.1f  %s\n", cost[dearest], name[dearest]
    delete cost[dearest]
  }
}
