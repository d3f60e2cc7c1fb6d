import { expect, it } from "vitest";
import { damagedStore, ref } from "../../http-api/test/damaged-partial.ts";
import { readOpenText } from "../src/open-answer.ts";

it("an open answer that is damaged counts as no text", async () => {
  await using store = await damagedStore();
  expect(await readOpenText(store, ref)).toBeNull();
});
