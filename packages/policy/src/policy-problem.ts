import { ThroughlineError } from "@throughline/core";
import { isFields } from "@throughline/core/internal";

export interface PolicyProblem {
  /** The path starts at the policy's root: `rules[2].match.chatType`. */
  readonly path: string;
  readonly value: unknown;
  readonly expected: string;
  /** Lists the valid field names when the path ends in an unknown field. */
  readonly known?: readonly string[];
}

export type Fields = Readonly<Record<string, unknown>>;

/** Collects all problems, so that one error reports them together. */
export class PolicyReader {
  readonly problems: PolicyProblem[] = [];

  fields(value: unknown, path: string, known: readonly string[]): Fields {
    if (!isFields(value)) {
      this.say(path, value, "an object");
      return {};
    }
    for (const name of Object.keys(value)) {
      if (!known.includes(name))
        this.say(join(path, name), value[name], `no such field; known are ${known.join(", ")}`, known);
    }
    return value;
  }

  choice<Choice extends string>(fields: Fields, path: string, name: string, choices: readonly Choice[]): Choice | null {
    const value = fields[name];
    if (value === undefined) return null;
    const found = choices.find((choice) => choice === value);
    if (found === undefined) this.say(join(path, name), value, `one of ${choices.join(", ")}`);
    return found ?? null;
  }

  text(fields: Fields, path: string, name: string): string | null {
    const value = fields[name];
    if (value === undefined) return null;
    if (typeof value === "string" && value.trim() !== "") return value;
    this.say(join(path, name), value, "text that is not empty");
    return null;
  }

  integer(fields: Fields, path: string, name: string, least: number, most: number): number | null {
    const value = fields[name];
    if (value === undefined) return null;
    if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
    this.say(join(path, name), value, `a whole number from ${least} to ${most}`);
    return null;
  }

  say(path: string, value: unknown, expected: string, known?: readonly string[]): void {
    this.problems.push({ path, value, expected, ...(known === undefined ? {} : { known }) });
  }

  /** @throws {ThroughlineError} CONFIG_INVALID with every problem, when there is one */
  assertSound(name: string): void {
    if (this.problems.length === 0) return;
    const said = this.problems.map(
      ({ path, value, expected }) => `${path === "" ? name : `${name}.${path}`} is ${shown(value)}: ${expected}`,
    );
    throw new ThroughlineError("CONFIG_INVALID", `${said.join("; ")}.`, { details: { problems: this.problems } });
  }
}

export function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
