import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { areKeysOn, setKeysOn } from "./keys.ts";
import { Icon } from "./ui/icons.tsx";

const groups: readonly (readonly [title: string, keys: readonly (readonly [string, string])[]])[] = [
  [
    "Everywhere",
    [
      ["s", "find a session, or words in it"],
      ["Ctrl+K", "the same"],
      ["?", "this help"],
      ["Esc", "close"],
    ],
  ],
  [
    "Lists",
    [
      ["j k", "next, previous"],
      ["g G", "first, last"],
      ["Enter", "open"],
    ],
  ],
  [
    "In a session",
    [
      ["j k", "next, previous message"],
      ["J K", "next, previous prompt"],
      ["[ ]", "previous, next compaction"],
      ["e", "next error"],
      ["g G", "start, end"],
      ["/", "find in this session"],
      ["n N", "next, previous hit"],
      ["t", "open or close all thinking"],
      ["o", "open or close all tool calls"],
      ["f", "files"],
      ["u", "usage"],
      ["r", "resume"],
      ["y", "copy the link of the message"],
    ],
  ],
];

export function HelpDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOn, setOn] = useState(areKeysOn);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose}>
      <div class="help-head">
        <h2 id="help-title">Keys</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="close" />
        </button>
      </div>
      <div class="help-groups">
        {groups.map(([title, keys]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {keys.map(([key, text]) => (
                <div key={key + text}>
                  <dt>
                    {key.split(" ").map((each) => (
                      <kbd key={each}>{each}</kbd>
                    ))}
                  </dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={isOn}
          onChange={({ currentTarget: { checked } }) => {
            setKeysOn(checked);
            setOn(checked);
          }}
        />
        Single keys act
      </label>
    </dialog>
  );
}
