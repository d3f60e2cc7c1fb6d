import { type ComponentChildren, type Context, createContext, type JSX } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";

/** Names languages by their names, or by the ends of names of files. A language that is not known is empty. */
export interface CodeLanguages {
  readonly code: string;
  readonly diff: string;
}

export const noLanguages: CodeLanguages = { code: "", diff: "" };

/** Has the languages of the code below. */
export const CodeLanguage: Context<CodeLanguages> = createContext(noLanguages);

interface CodeBlockProps {
  readonly className: string | undefined;
  /** Changes when the text does. */
  readonly of: unknown;
  readonly children: ComponentChildren;
}

/** Shows code as it is written. Its colors arrive when their script is loaded. */
export function CodeBlock({ className, of, children }: CodeBlockProps): JSX.Element {
  const { code, diff } = useContext(CodeLanguage);
  const language = className === "diff" ? diff : code;
  const block = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (language === "") return undefined;
    let isGone = false;
    let clear = (): void => {};
    import("./color-code.ts").then(
      ({ colorCode }) => {
        if (!isGone && block.current !== null) clear = colorCode(block.current, language);
      },
      // Without its script the code stays in the color of the text.
      () => {},
    );
    return () => {
      isGone = true;
      clear();
    };
  }, [language, of]);
  return (
    <pre ref={block} class={className}>
      {children}
    </pre>
  );
}

/** Returns the end of the name of a file, which names its language; empty for any other text. */
export function languageOfPath(path: string): string {
  const [, end = ""] = /^[^\s]{1,400}\.([a-z0-9+]{1,10})$/i.exec(path) ?? [];
  return end;
}
