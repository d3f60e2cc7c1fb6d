import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { crashStates, imageDigest } from "./crash-states.ts";
import { exploreCrashes, type Step } from "./crash-explorer.ts";
import { lifeOfHastySessions, lifeOfPartials, lifeOfSessions } from "./crash-steps.ts";
import { countFaults } from "./fault-counts.ts";
import { countFallible, liveWithFault } from "./fault-explorer.ts";
import { createSimulatedDisk, systemError } from "./simulated-disk.ts";

const text = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString();

/** Far above what these take, which is three milliseconds of processor a state: machines are busy. */
const timeout = 600_000;

/** What is wrong in any life of which one call fails, whichever call it is: each one is tried, in both ways. */
async function problemsOfFailedCalls(life: () => readonly Step[]): Promise<readonly string[]> {
  const calls = await countFallible(life());
  expect(calls).toBeGreaterThan(100);
  const problems: string[] = [];
  for (const code of ["EIO", "ENOSPC"] as const)
    for (let place = 1; place <= calls; place++) problems.push(...(await liveWithFault(life(), { place, code })));
  return problems.slice(0, 3);
}

describe("a power cut", () => {
  it(
    "at any moment loses nothing that was acknowledged and shows nothing half done",
    { tags: ["slow"], timeout },
    async (context) => {
      const sample = {
        cutEveryBytes: 16,
        statesPerMoment: testSize({ short: 30, long: 90 }),
        recoverEvery: 100,
        statesPerRecovery: testSize({ short: 2, long: 3 }),
      };
      const result = await exploreCrashes(lifeOfSessions(), sample);
      expect(result.problems.slice(0, 3)).toEqual([]);
      expect(result.states).toBeGreaterThanOrEqual(testSize({ short: 1000, long: 2000 }));
      countFaults(context, { states: result.states });
    },
  );

  it(
    "at any moment of stores that are closed after each step loses nothing either",
    { tags: ["slow"], timeout },
    async (context) => {
      const sample = { cutEveryBytes: 24, statesPerMoment: 2, recoverEvery: 0, isReopened: true };
      const result = await exploreCrashes(lifeOfSessions(), sample);
      expect(result.problems.slice(0, 3)).toEqual([]);
      expect(result.states).toBeGreaterThanOrEqual(400);
      countFaults(context, { states: result.states });
    },
  );
});

describe("the partial of an open reply", () => {
  it.for([false, true])(
    "is after a power cut as it was acknowledged last, or as it was to be; gone where it was taken away: %s",
    { timeout },
    async (isReopened, context) => {
      const statesPerMoment = isReopened ? testSize({ short: 2, long: 4 }) : testSize({ short: 12, long: 40 });
      const sample = { cutEveryBytes: 4, statesPerMoment, recoverEvery: 50, statesPerRecovery: 2, isReopened };
      const result = await exploreCrashes(lifeOfPartials(), sample);
      expect(result.problems.slice(0, 3)).toEqual([]);
      expect(result.states).toBeGreaterThanOrEqual(testSize({ short: 100, long: 200 }));
      countFaults(context, { states: result.states });
    },
  );

  it("is right, or an error that says what is known, when a call fails once", { tags: ["slow"], timeout }, async () => {
    expect(await problemsOfFailedCalls(lifeOfPartials)).toEqual([]);
  });
});

describe("what is acknowledged at disk", () => {
  it.for([false, true])(
    "is there after a power cut though its session was made with less, stores closed after each step: %s",
    { tags: ["slow"], timeout },
    async (isReopened, context) => {
      const statesPerMoment = isReopened ? testSize({ short: 1, long: 2 }) : testSize({ short: 6, long: 12 });
      const sample = { cutEveryBytes: 48, statesPerMoment, recoverEvery: 100, statesPerRecovery: 2, isReopened };
      const result = await exploreCrashes(lifeOfHastySessions(), sample);
      expect(result.problems.slice(0, 3)).toEqual([]);
      expect(result.states).toBeGreaterThanOrEqual(testSize({ short: 200, long: 400 }));
      countFaults(context, { states: result.states });
    },
  );

  it(
    "is there after a call failed once while its session was put on the disk",
    { tags: ["slow"], timeout },
    async () => {
      expect(await problemsOfFailedCalls(lifeOfHastySessions)).toEqual([]);
    },
  );
});

describe("a disk that fails once", () => {
  it(
    "at any call is reported as what it is, and what is acknowledged afterwards survives a power cut",
    { tags: ["slow"], timeout },
    async () => {
      expect(await problemsOfFailedCalls(lifeOfSessions)).toEqual([]);
    },
  );
});

describe("the simulated disk", () => {
  it("leaves of an unflushed write every beginning, zeros, nothing, and of a flushed one everything", () => {
    const disk = createSimulatedDisk(
      new Map([
        ["/", null],
        ["/f", Buffer.from("ab")],
      ]),
    );
    const handle = disk.files.open("/f", "append");
    disk.files.write(handle, Buffer.from("cd"));
    disk.files.flushNow(handle);
    disk.files.write(handle, Buffer.from("efg"));
    const left = [...crashStates(disk.moment(), { cutEveryBytes: 1 })].map((image) => text(image.get("/f")));
    expect([...new Set(left)].toSorted()).toEqual(
      ["abcd", "abcde", "abcdef", "abcdefg", "abcd\0\0\0", "abcde\0\0", "abcdef\0"].toSorted(),
    );
  });

  it("keeps a name only when its folder was flushed, and a rename whole or not at all", () => {
    const disk = createSimulatedDisk(
      new Map([
        ["/", null],
        ["/old", Buffer.from("old")],
      ]),
    );
    const { files } = disk;
    const handle = files.open("/new", "create");
    files.write(handle, Buffer.from("new"));
    files.flushNow(handle);
    files.rename("/new", "/old");
    const names = (): readonly string[] => [
      ...new Set(
        [...crashStates(disk.moment(), { cutEveryBytes: 1 })].map((image) =>
          [...image].map(([path, bytes]) => `${path} ${text(bytes)}`).join(", "),
        ),
      ),
    ];
    expect(names().toSorted()).toEqual(["/ , /old new", "/ , /old old", "/ , /old old, /new new"].toSorted());
    files.flushFolder("/");
    expect(names()).toEqual(["/ , /old new"]);
  });

  it("does not put bytes on the disk that a failed flush has lost, until they are written again", () => {
    const disk = createSimulatedDisk(
      new Map([
        ["/", null],
        ["/f", Buffer.from("")],
      ]),
    );
    const { files } = disk;
    const handle = files.open("/f", "append");
    const left = (): readonly string[] => [
      ...new Set([...crashStates(disk.moment(), { cutEveryBytes: 9 })].map((image) => text(image.get("/f")))),
    ];
    files.write(handle, Buffer.from("ab"));
    disk.onCall = (call) => {
      if (call === "flushNow") throw systemError("EIO");
      return undefined;
    };
    expect(() => files.flushNow(handle)).toThrow("EIO");
    disk.onCall = () => undefined;
    files.write(handle, Buffer.from("cd"));
    files.flushNow(handle);
    expect(left().toSorted()).toEqual(["\0\0cd", "abcd"]);
    const again = files.open("/f", "rewrite");
    files.writeAt(again, Buffer.from("abcd"), 0);
    files.flushNow(again);
    expect(left()).toEqual(["abcd"]);
  });

  it("tells images apart", () => {
    const one = new Map([["/a", Buffer.from("x")]]);
    expect(imageDigest(one)).toBe(imageDigest(new Map([["/a", Buffer.from("x")]])));
    expect(imageDigest(one)).not.toBe(imageDigest(new Map([["/a", Buffer.from("y")]])));
    expect(imageDigest(one)).not.toBe(imageDigest(new Map([["/a", null]])));
  });
});
