import type { JSX } from "preact";
import { clockOf } from "../../format.ts";
import { shown } from "../../ui/text.ts";
import type { PartialReply } from "./partial-reply.ts";

interface PartialProps {
  readonly reply: PartialReply;
  readonly index: number;
  readonly start: number;
  readonly measure: (element: HTMLElement | null) => void;
}

/** Shows the text of a reply that is being written, behind the last record. */
export function PartialItem({ reply, index, start, measure }: PartialProps): JSX.Element {
  return (
    <article
      class="item arriving"
      data-index={index}
      ref={measure}
      aria-label="Reply that is being written"
      aria-busy="true"
      style={{ transform: `translateY(${start}px)` }}
    >
      <header class="item-head">
        <b>Assistant</b>
        <span>arriving</span>
        <span class="item-place">
          <time>{clockOf(reply.updatedMs)}</time>
        </span>
      </header>
      <div class="prose assistant">
        <div class="long">
          <p>{shown(reply.text)}</p>
        </div>
      </div>
    </article>
  );
}
