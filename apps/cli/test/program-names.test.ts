import { foreignFormats } from "@throughline/foreign-formats";
import { expect, it } from "vitest";
import { programName } from "../src/program-names.ts";
import { transferCommands } from "../src/command-groups/transfer-commands.ts";

it("programs have the names that their formats state", () => {
  for (const [format, { program }] of foreignFormats) expect(programName(format)).toBe(program);
});

it("every format that is imported has a name", () => {
  const { options = [] } = transferCommands.find(({ name }) => name === "import") ?? {};
  const formats = options.find(({ flags }) => flags.startsWith("--from"))?.choices ?? [];
  expect(formats).toContain("pi");
  const isItself = formats.filter((format) => programName(format) === format && format !== "auto");
  expect(isItself).toEqual(["pi", "claw0", "opencode"]);
  expect(programName("constructor")).toBe("constructor");
});
