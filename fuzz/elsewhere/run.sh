#!/bin/bash
# usage: run.sh SECONDS OUT [NAME...]  runs all fuzz targets of this folder (or those named) for so long, as many at once as they
# are. Needs bash, coreutils, tar and gzip, and about 1 GiB of memory for each target. Leaves in OUT: runs.tsv, a line for each target
# (its name, seconds of the clock, seconds of processors, executions, findings); logs and findings; new.tar.gz, the inputs that
# reach something new, at most 20 MB. `./dev fuzz --take=OUT` takes them into the tree. HALYARD_FUZZ_SEED repeats a run.
set -u
export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}" LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
{ [ $# -ge 2 ] && [[ "$1" =~ ^[1-9][0-9]*$ ]]; } || { sed -n 's/^# \(usage\)/\1/p' "$0" >&2; exit 2; }
seconds=$1
mkdir -p "$2"/{logs,findings,runs} || exit 1
out=$(readlink -f "$2")
shift 2
cd "$here" || exit 1
if [ $# -eq 0 ]; then set -- $(ls options); fi
work=$(mktemp -d "${TMPDIR:-/tmp}/halyard-fuzz.XXXXXX")
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export ASAN_OPTIONS=malloc_context_size=1:detect_stack_use_after_return=0:quarantine_size_mb=16
export TMPDIR=$work HOME=$work XDG_CACHE_HOME=$work/cache
seed=${HALYARD_FUZZ_SEED:-$(($(date +%s) % 1000000007))}
most=$((20000000 / $#)) # bytes of new inputs for each target
merge_seconds=$((seconds / 8 + 20))

# What libFuzzer needs: a run that never began is told apart from one that found nothing.
for name in "$@"; do
  "./$name" -help=1 >/dev/null 2>"$work/why" || { printf 'run: %s does not start here: %s\n' "$name" "$(tail -n 3 "$work/why")" >&2; exit 1; }
done

# one NAME: a finding ends a process, so there may be several in the time, each with another seed.
one() {
  local name=$1 end=$((SECONDS + seconds)) started=$SECONDS round=0 executions=0 findings=0 count log own options processor=0 used
  local TIMEFORMAT='%U %S'
  mapfile -t options <"options/$name"
  own=$work/$name
  mkdir -p "$own/new" "$own/merged" "$own/tmp"
  while [ $((end - SECONDS)) -gt 0 ] && [ "$round" -lt 50 ]; do
    log=$out/logs/$name.$round.log
    used=$({ time TMPDIR=$own/tmp "./$name" "$own/new" "corpus/$name" -max_total_time=$((end - SECONDS)) -seed=$((seed + round)) -timeout=20 \
      -rss_limit_mb=3072 -malloc_limit_mb=512 -fork=0 -print_final_stats=1 -artifact_prefix="$out/findings/$name-" "${options[@]}" >"$log" 2>&1; echo $? >"$own/status"; } 2>&1)
    count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    [ -n "$count" ] || count=$(sed -n 's/^#\([0-9]*\).*/\1/p' "$log" | tail -n 1)
    executions=$((executions + ${count:-0}))
    processor=$(awk -v a="$processor" -v u="$used" 'BEGIN { split(u, t, " "); print a + t[1] + t[2] }')
    [ "$(cat "$own/status")" = 0 ] || findings=$((findings + 1))
    # The beginning and the end of a log say all.
    [ "$(wc -c <"$log")" -lt 300000 ] || { head -c 100000 "$log"; printf '\n[...]\n'; tail -c 150000 "$log"; } >"$log.short" && [ ! -s "$log.short" ] || mv "$log.short" "$log"
    round=$((round + 1))
  done
  printf '%s\t%d\t%.0f\t%d\t%d\n' "$name" $((SECONDS - started)) "$processor" "$executions" "$findings" >"$out/runs/$name"
  # What is new beside the corpora that were there, the smallest first.
  cp -r "corpus/$name/." "$own/merged"
  ls "$own/merged" | sort >"$own/before"
  if timeout "$merge_seconds" "./$name" -merge=1 "$own/merged" "$own/new" -timeout=20 -rss_limit_mb=3072 "${options[@]}" >"$out/logs/$name.merge.log" 2>&1; then
    printf '%s: merged\n' "$name" >>"$out/merged"
  else
    cp -r "$own/new/." "$own/merged" # all of them, then: whoever takes them merges them
  fi
  mkdir -p "$work/tar/$name"
  (cd "$own/merged" && find . -type f -printf '%s %f\n' | sort -n | awk -v most="$most" '(total += $1) <= most { print $2 }' | sort | comm -23 - "$own/before" |
    xargs -r cp -t "$work/tar/$name")
  rm -rf "$own"
}

for name in "$@"; do one "$name" & done
wait
cat "$out"/runs/* >"$out/runs.tsv"
rm -rf "$out/runs"
tail -c 4000 "$out"/logs/*.merge.log >"$work/merges" 2>/dev/null
rm -f "$out"/logs/*.merge.log
mv "$work/merges" "$out/logs/merges.log"
tar -C "$work/tar" -czf "$out/new.tar.gz" .
sed 's/\t/ /g' "$out/runs.tsv"
printf '%s bytes of new inputs; findings: %s\n' "$(wc -c <"$out/new.tar.gz")" "$(find "$out/findings" -type f | wc -l)"
