import { describe, expect, it } from "vitest";
import { expandStoreUrl } from "../src/store-url.ts";
import { maskDeep, maskSecrets } from "../src/mask-secrets.ts";
import { parseStoreUrl } from "@throughline/config";

describe("expandStoreUrl", () => {
  it.each([
    ["sqlite:~/a.db", "sqlite:/home/ada/a.db"],
    ["JSONL:~", "JSONL:/home/ada"],
    ["sqlite:./~/a.db", "sqlite:./~/a.db"],
    ["sqlite:~ada/a.db", "sqlite:~ada/a.db"],
    ["postgres://a/~/b", "postgres://a/~/b"],
    ["sqlite:/srv/~/$&.db", "sqlite:/srv/~/$&.db"],
  ])("makes of %s %s", (url, full) => {
    expect(expandStoreUrl(url, "/home/ada")).toBe(full);
  });
});

describe("parseStoreUrl", () => {
  it.each([
    ["jsonl:data", "/home/ada/data"],
    ["jsonl:./data/", "/home/ada/data"],
    ["jsonl:/srv/data", "/srv/data"],
    ["JSONL:/srv/data", "/srv/data"],
    ["jsonl:///srv/data", "/srv/data"],
    ["jsonl:with spaces and: colons", "/home/ada/with spaces and: colons"],
  ])("reads %s", (url, root) => {
    expect(parseStoreUrl(url, "/home/ada")).toEqual({ scheme: "jsonl", root });
  });

  it("reads sqlite:", () => {
    expect(parseStoreUrl("sqlite:a.db", "/home/ada")).toEqual({ scheme: "sqlite", path: "/home/ada/a.db" });
    expect(parseStoreUrl("sqlite:///srv/a.db", "/home/ada")).toEqual({ scheme: "sqlite", path: "/srv/a.db" });
  });

  it("reads memory:", () => {
    expect(parseStoreUrl("memory:", "/")).toEqual({ scheme: "memory" });
  });

  it.each(["postgres://ada:secret@host/db", "postgresql://host:5433/db?schema=mine"])("reads %s", (url) => {
    expect(parseStoreUrl(url, "/")).toEqual({ scheme: "postgres", url });
  });

  it.each([
    ["", "STORE_URL_INVALID"],
    ["data", "STORE_URL_INVALID"],
    ["/srv/data", "STORE_URL_INVALID"],
    ["jsonl:", "STORE_URL_INVALID"],
    ["memory:x", "STORE_URL_INVALID"],
    ["file:/srv", "STORE_URL_INVALID"],
    ["postgres:a", "STORE_URL_INVALID"],
    ["sqlite:", "STORE_URL_INVALID"],
    ["postgres://ada:s:ecret/secret@host:x/db", "STORE_URL_INVALID"],
    ["mysql://ada:secret@host/db", "STORE_URL_INVALID"],
    ["sqlite://a.db", "STORE_URL_INVALID"],
    ["jsonl://host/share", "STORE_URL_INVALID"],
    ["sqlite::memory:", "STORE_URL_INVALID"],
    ["sqlite:file:a.db?mode=ro", "STORE_URL_INVALID"],
  ])("refuses %j with %s, naming what there is and no secret", (url, code) => {
    const attempt = (): unknown => parseStoreUrl(url, "/");
    expect(attempt).toThrow(
      expect.objectContaining({
        code,
      }),
    );
    expect(attempt).not.toThrow(/secret/);
  });
});

describe("maskSecrets", () => {
  it.each([
    ["postgres://ada:secret@host/db", "postgres://ada:***@host/db"],
    ["postgres://ada:s3:cr@et/x@host:5432/db", "postgres://ada:***@host:5432/db"],
    ["postgres://:secret@host", "postgres://:***@host"],
    ["postgres://host/db?user=ada&password=secret&x=1", "postgres://host/db?user=ada&password=***&x=1"],
    ["cannot open postgres://a:b@c now", "cannot open postgres://a:***@c now"],
    ["jsonl:/home/ada/a:b@c", "jsonl:/home/ada/a:b@c"],
    ["no url at all, mail ada@example.org", "no url at all, mail ada@example.org"],
    ["https://h/?api_key=1&access_token=2", "https://h/?api_key=***&access_token=***"],
    ['{"url":"postgres://a:b@c","next":"redis://:pw@d"}', '{"url":"postgres://a:***@c","next":"redis://:***@d"}'],
    ["sent Authorization: Bearer abc.def-123=, then x", "sent Authorization: Bearer ***, then x"],
    ["Incorrect API key provided: sk-proj-Ab12_Cd34-Ef56.", "Incorrect API key provided: sk-***."],
    [
      "Basic questions: Bearer authentication, task-list-of-all",
      "Basic questions: Bearer authentication, task-list-of-all",
    ],
    ["https://h/a?b?token=1;pwd=2", "https://h/a?b?token=***;pwd=***"],
  ])("masks %s", (text, masked) => {
    expect(maskSecrets(text)).toBe(masked);
  });

  it.each(["x", "a://b:", "://", "?", "&token", "a@"])(
    "takes a long text of %j in a moment",
    (part) => {
      const text = part.repeat(200_000 / part.length);
      expect(maskSecrets(text).length).toBeLessThanOrEqual(text.length);
    },
    1000,
  );

  it("reaches into details", () => {
    expect(maskDeep({ a: ["postgres://u:p@h"], b: { c: 1, d: null } })).toEqual({
      a: ["postgres://u:***@h"],
      b: { c: 1, d: null },
    });
  });

  it("reaches into details of any depth, and shows no value of a field that is named for a secret", () => {
    let deep: unknown = "postgres://u:hidden@h";
    for (let level = 0; level < 50; level++) deep = { level: [deep] };
    expect(JSON.stringify(maskDeep(deep))).toContain("postgres://u:***@h");
    for (let level = 0; level < 20_000; level++) deep = [deep];
    expect(JSON.stringify(maskDeep(deep))).not.toContain("hidden");
    const ring: Record<string, unknown> = { apiKey: "hidden", tokens: 5, apiKeys: ["sk-hidden-0123456789"] };
    ring["self"] = [ring];
    expect(maskDeep(ring)).toEqual({ apiKey: "***", tokens: 5, apiKeys: ["sk-***"], self: ["(the same again)"] });
  });
});
