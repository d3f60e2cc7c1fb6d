import { expect, it } from "vitest";
import { unplannedStatements, warnings } from "../citus-log.ts";

const logs = [
  [
    "00000 LOG:  checkpoint starting: time",
    "0A000 ERROR:  complex joins are only supported when all distributed tables are joined on their distribution columns",
    '0A000 WARNING:  "view t1_2.compactions" has dependency to "table t1_2.records"',
    "XX000 ERROR:  could not find valid entry for shard 127983",
    "23505 ERROR:  duplicate key value violates unique constraint",
  ].join("\n"),
  '0A000 ERROR:  complex joins are only supported when all distributed tables are joined on their distribution columns\n0A000 WARNING:  "view t1_3.compactions" has dependency to "table t1_3.records"\n',
];

it("finds in the logs of all nodes what Citus could not plan, and leaves out what met a moving shard", () => {
  expect(unplannedStatements(logs)).toEqual([
    {
      text: "complex joins are only supported when all distributed tables are joined on their distribution columns",
      count: 2,
    },
  ]);
});

it("counts warnings that differ in their numbers as one", () => {
  expect(warnings(logs)).toEqual([
    { text: '"view tN_N.compactions" has dependency to "table tN_N.records"', count: 2 },
  ]);
});
