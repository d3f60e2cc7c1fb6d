import { describe, expect, it } from "vitest";
import { isTerminalKey } from "../../src/queries/terminal-keys.ts";

const key = "agent:main:main";

describe("isTerminalKey", () => {
  it("tells by its key whether a session continues in a terminal", () => {
    const keys = [
      [key, "talk", "goclaw:main:main", "main:cli:ada", "agent:main:direct:ada", "agent:main:dm:ada"],
      ["agent:main:cli:direct:notes", "agent:main:import:direct:x", "agent:main:main:thread:7", "agent:main:a:b"],
      ["agent:main:slack:channel:c1", "agent:main:discord:direct:1", "agent:main:telegram:group:2:topic:3"],
      ["main:slack:U1", "agent:main:subagent:w:1", "agent:main:cron:daily", "agent:main:cli:group:all"],
    ];
    expect(keys.map((each) => each.map(isTerminalKey))).toEqual([
      [true, true, true, true, true, true],
      [true, true, true, true],
      [false, false, false],
      [false, false, false, false],
    ]);
  });
});
