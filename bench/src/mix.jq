# SPDX-License-Identifier: MIT
# The jq workload: group, aggregate, sort, format and test strings over a large array of records.
[.[] | select(.active and (.tags | length) > 1)]
| group_by(.city)
| map({
    city: .[0].city,
    people: length,
    mean: (map(.score) | add / length | floor),
    names: (map(.name | ascii_upcase | select(test("^[A-M].*[AEIOU]"))) | sort | .[0:5]),
    tags: (map(.tags[]) | unique | join(","))
  })
| sort_by(-.people, .city)[]
