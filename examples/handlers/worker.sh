#!/usr/bin/env bash
# windrow run --csv users.csv --rate 50/s -- ./handler.sh
while read -r line; do
  case $line in *'"type":"item"'*) ;; *) continue ;; esac   # the first line is a hello
  echo "item: $line" >&2                                    # the work; stdout is for answers only
  echo ok                                                   # or: skip, retry, fail
done
