import type { Host } from "../../host.ts";

/** Marks of the shell integration: terminals jump between the inputs, and select the output of one. */
const marks = { input: "\u001b]133;A\u0007", output: "\u001b]133;C\u0007", end: "\u001b]133;D\u0007" };

export class ShellMarks {
  readonly #stdout: Host["stdout"];
  readonly #isOn: boolean;

  constructor({ stdout, environment }: Pick<Host, "stdout" | "environment">) {
    this.#stdout = stdout;
    // The console of Linux would print them.
    this.#isOn = environment["TERM"] !== "linux";
  }

  write(name: "output" | "end"): void {
    if (this.#isOn) this.#stdout.write(marks[name]);
  }

  /** Returns the rows of an input with its mark. */
  input(rows: readonly string[]): readonly string[] {
    return this.#isOn ? [`${marks.input}${rows[0] ?? ""}`, ...rows.slice(1)] : rows;
  }
}
