import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { announce } from "./announce.ts";
import { Icon } from "./icons.tsx";
import { errorOf } from "../use-load.ts";
import { shown } from "./text.ts";

interface CopyProps {
  readonly text: string;
  readonly label: string;
}

/** Copies the original text, also where the page shows signs in place of invisible characters. */
export function CopyButton({ text, label }: CopyProps): JSX.Element {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return undefined;
    const timer = setTimeout(() => setState("idle"), 1600);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = (): void => {
    void copyText(text).then((done) => setState(done ? "copied" : "failed"));
  };
  return (
    <button type="button" class="icon-button" aria-label={label} title={label} onClick={copy}>
      <Icon name={state === "copied" ? "check" : state === "failed" ? "close" : "copy"} />
    </button>
  );
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied");
    return true;
  } catch {
    // A browser without permission refuses. The text stands on the page and can be selected.
    announce("The browser did not allow copying. Select the text instead.");
    return false;
  }
}

interface CopyAsProps {
  /** Returns the text. It is made on a click, because it may be long. */
  readonly text: () => Promise<string>;
  readonly label: string;
}

/** Copies a text that is made on a click. Its label stands on the button. */
export function CopyAs({ text, label }: CopyAsProps): JSX.Element {
  const [problem, setProblem] = useState("");
  const copy = (): void => {
    setProblem("");
    text()
      .then(copyText)
      .catch((error: unknown) => setProblem(errorOf(error).message));
  };
  return (
    <>
      <button type="button" class="text-button" onClick={copy}>
        {label}
      </button>
      {problem === "" ? null : <span class="error-text">{problem}</span>}
    </>
  );
}

/** Shows a command with a button that copies it. The page never runs one. */
export function Command({ text }: { readonly text: string }): JSX.Element {
  return (
    <div class="shell">
      <code>{shown(text)}</code>
      <CopyButton text={text} label={`Copy the command ${shown(text)}`} />
    </div>
  );
}
