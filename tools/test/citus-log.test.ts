import { expect, it } from "vitest";
import { unexpectedErrors, warnings } from "../citus-log.ts";

const complex =
  "0A000 ERROR:  complex joins are only supported when all distributed tables are joined on their distribution columns";
const logs = [
  [
    "00000 LOG:  checkpoint starting: time",
    complex,
    '0A000 WARNING:  "view t1_2.compactions" has dependency to "table t1_2.records"',
    "XX000 ERROR:  could not find valid entry for shard 127983",
    "XX000 ERROR:  cache lookup failed for relation 16384",
    '42601 ERROR:  syntax error at or near ")" at character 17',
    "42601 STATEMENT:  SELECT FROM t1_2.sessions WHERE )",
    '23505 ERROR:  duplicate key value violates unique constraint "sessions_address_102008"',
    "57014 ERROR:  canceling statement due to statement timeout",
  ].join("\n"),
  `${complex}\n0A000 WARNING:  "view t1_3.compactions" has dependency to "table t1_3.records"\n`,
];

it("finds in the logs of all nodes every error that the suite does not provoke", () => {
  expect(unexpectedErrors(logs)).toEqual([
    { text: complex, count: 2 },
    { text: "XX000 ERROR:  cache lookup failed for relation N", count: 1 },
    { text: '42601 ERROR:  syntax error at or near ")" at character N', count: 1 },
  ]);
});

it("counts warnings that differ in their numbers as one", () => {
  expect(warnings(logs)).toEqual([
    { text: '"view tN_N.compactions" has dependency to "table tN_N.records"', count: 2 },
  ]);
});
