import type { AppendOptions } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { afterEach, describe, expect, it } from "vitest";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const ownFrame = /packages\/store-jsonl\/src\/([a-z-]+)\.ts/;
const { stackTraceLimit } = Error;

/** The calls of the package that lead to where this is called, the outermost last: `file function`. */
function ownCalls(): readonly string[] {
  const { stack = "" } = new Error("where it is called");
  return stack.split("\n").flatMap((frame) => {
    const file = ownFrame.exec(frame)?.[1];
    const name = /^ +at (?:async )?(?:new )?([^ (]+) \(/.exec(frame)?.[1];
    return file === undefined ? [] : [`${file} ${name ?? "without a name"}`];
  });
}

afterEach(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

describe("the way of an append to the disk", () => {
  it.for([
    ["at disk", () => ({ durability: "disk" })],
    ["at process", () => ({ durability: "process" })],
    ["with a patch of the entry", (nth) => ({ entry: { label: `label ${nth}` } })],
    ["with a key", (nth) => ({ idempotencyKey: `key ${nth}` })],
  ] as readonly (readonly [string, (nth: number) => AppendOptions])[])(
    "is at most seven calls in six files from the queue to the system, each with a name: %s",
    async ([, how]) => {
      Error.stackTraceLimit = 100;
      const root = newFolder();
      await (await storeWithSession(root)).close();
      const ways: (readonly string[])[] = [];
      const files: Files = {
        ...nodeFiles,
        write(handle, bytes) {
          ways.push(ownCalls());
          return nodeFiles.write(handle, bytes);
        },
      };
      await using store = createJsonlStore({ root, files, derivedDelayMs: Infinity });
      await store.append(mainRef, [userDraft("opens the transcript")], how(1));
      await store.append(mainRef, [userDraft("two")], how(2));
      await Promise.all(
        ["three", "four"].map((text) => store.append(mainRef, [userDraft(text)], { durability: "process" })),
      );
      expect(ways.length).toBeGreaterThanOrEqual(3);
      for (const way of ways) {
        const begun = way.findIndex((call) => call.startsWith("append-queue "));
        const calls = way.slice(0, begun);
        expect(calls.length).toBeGreaterThan(1);
        expect(calls.filter((call) => call.endsWith("without a name"))).toEqual([]);
        expect([calls.length <= 7, calls]).toEqual([true, calls]);
        expect(new Set(calls.map((call) => call.split(" ")[0])).size).toBeLessThanOrEqual(6);
      }
    },
  );
});
