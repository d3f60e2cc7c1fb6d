import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const folder = import.meta.dirname;
const server = "abuse.test.ts";
const variants = "abuse-variants.test.ts";
const connections = "abuse-connections.test.ts";
const load = "abuse-load.test.ts";
const gateway = "abuse-gateway.test.ts";
const upstreams = "abuse-upstreams.test.ts";
const command = "../../cli/test/serve.test.ts";

/** Requests that the server must answer in one way only, each with the files whose tests show it. */
const rows: ReadonlyMap<number, readonly [request: string, ...files: string[]]> = new Map([
  [1, ["no, malformed, unknown, expired or revoked token", server, variants]],
  [2, ["a token in the query", server]],
  [3, ["a wrong secret 11 times a minute; unknown ids and wrong secrets by time", server, load]],
  [4, ["another address without a token", command]],
  [5, ["a token file or home that others can read", command]],
  [6, ["names of other hosts, an absolute target, two Host lines", server, variants]],
  [7, ["a foreign origin with a valid token", server, variants]],
  [8, ["a preflight from elsewhere", server]],
  [9, ["a cross-site request without an origin", server, variants]],
  [10, ["JSON as text or as a form", server]],
  [11, ["a write with a token that reads", server]],
  [12, ["another agent's or tenant's session", server, variants]],
  [13, ["another tenant's namespace", server]],
  [14, ["keys that are paths, NUL, or no UTF-8", server, variants]],
  [15, ["paths out of the page's folder", server]],
  [16, ["a length over the limit", connections, variants]],
  [17, ["an endless body", connections, load]],
  [18, ["requests that arrive byte by byte, 1,000 of them", connections, load]],
  [19, ["headers too large or too many", connections]],
  [20, ["two ways to frame a body, and what follows it", connections, variants]],
  [21, ["JSON 100,000 deep; 36 MiB of brackets", server, variants]],
  [22, ["names of prototypes", server]],
  [23, ["a packed body", server, variants]],
  [24, ["a stream that nobody reads", connections, variants, load]],
  [25, ["the 201st stream of a token", connections]],
  [26, ["a forged cursor, or another's", server, variants]],
  [27, ["an idempotency key with another body", server]],
  [28, ["an old fence, an old revision, none", server]],
  [29, ["paths that an upstream may read as others", upstreams]],
  [30, ["headers that name another host", upstreams]],
  [31, ["a redirect of an upstream", upstreams]],
  [32, ["a session of another scope", upstreams]],
  [33, ["another tenant's responses, conversations, threads", upstreams]],
  [34, ["files and accounts with a key of ours", upstreams]],
  [35, ["changes of an Ollama's models", upstreams]],
  [36, ["a switch of protocols", server, upstreams]],
  [37, ["TRACE, an unknown method, CONNECT", server]],
  [38, ["control characters for the log", connections]],
  [39, ["planted secrets", connections]],
  [40, ["metrics without their scope; many keys", connections]],
  [41, ["hostile markup", server]],
  [42, ["an upstream's line of 1 GiB, or header of 1 MiB", gateway]],
]);

const textOf = (file: string): string => readFileSync(join(folder, file), "utf8");

it("names each row of the abuse list and where it is tested", () => {
  const untested: string[] = [];
  for (const [row, [request, ...files]] of rows)
    for (const file of files) {
      const titles = textOf(file).matchAll(/"rows? ([\d, and]+):/g);
      const isThere = Array.from(titles).some(([, numbers = ""]) => numbers.match(/\d+/g)?.includes(String(row)));
      if (!isThere) untested.push(`row ${row} (${request}) in ${file}`);
    }
  expect(untested).toEqual([]);
  const named = Array.from(rows.keys());
  const all = Array.from({ length: 42 }, (_, index) => index + 1);
  expect(named).toEqual(all);
});
