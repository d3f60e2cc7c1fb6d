import type { ComponentChildren, JSX } from "preact";

interface SliderProps {
  readonly name: string;
  readonly className: string;
  readonly isVertical: boolean;
  /** Is the place in `seqs` where the reader is. */
  readonly at: number;
  readonly seqs: readonly number[];
  /** Says in words where the reader is. */
  readonly text: string;
  readonly onJump: (seq: number) => void;
  /** Takes the place of a click in pixels from the start. */
  readonly onPoint: (pixels: number) => void;
  /** Explains the marks to a pointer that rests on them. */
  readonly hint?: string;
  readonly children: ComponentChildren;
}

/** Is a map of the session. Arrow keys go from stop to stop, a click goes to its place. */
export function Slider(props: SliderProps): JSX.Element {
  const { name, className, isVertical, at, seqs, text, onJump, onPoint, hint, children } = props;
  const go = (place: number): void => {
    const seq = seqs[Math.max(0, Math.min(seqs.length - 1, place))];
    if (seq !== undefined) onJump(seq);
  };
  const keys: Readonly<Record<string, number>> = {
    ArrowLeft: at - 1,
    ArrowUp: at - 1,
    ArrowRight: at + 1,
    ArrowDown: at + 1,
    PageUp: at - 10,
    PageDown: at + 10,
    Home: 0,
    End: seqs.length - 1,
  };
  return (
    <div
      class={className}
      role="slider"
      tabIndex={0}
      aria-label={name}
      title={hint}
      aria-orientation={isVertical ? "vertical" : "horizontal"}
      aria-valuemin={1}
      aria-valuemax={Math.max(1, seqs.length)}
      aria-valuenow={Math.max(1, at + 1)}
      aria-valuetext={text}
      onKeyDown={(event) => {
        const place = keys[event.key];
        if (place === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        go(place);
      }}
      onClick={(event) => {
        const box = event.currentTarget.getBoundingClientRect();
        onPoint(isVertical ? event.clientY - box.top : event.clientX - box.left);
      }}
    >
      {children}
    </div>
  );
}
