import type { ThroughlineError } from "@throughline/core";
import { nearestName, quote } from "@throughline/core/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";

/**
 * The hidden command `__complete` computes every answer, so that an installed script never becomes outdated. Bash
 * splits words at colons, which keys contain. So the script splits the line at white space, and removes the text up to
 * the last colon from the answers.
 */
const bash = `_throughline() {
  local line="\${COMP_LINE:0:COMP_POINT}" words cur reply
  read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  cur="\${words[\${#words[@]}-1]}"
  COMPREPLY=()
  while IFS= read -r reply; do
    [[ "$cur" == *:* ]] && reply="\${reply#"\${cur%"\${cur##*:}"}"}"
    COMPREPLY+=("$reply")
  done < <(throughline __complete -- "\${words[@]:1}" 2> /dev/null)
}
complete -o default -F _throughline throughline
`;

const zsh = `#compdef throughline
_throughline() {
  local -a replies
  replies=("\${(@f)$(throughline __complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ -n "$replies" ]]; then compadd -- "\${replies[@]}"; else _files; fi
}
compdef _throughline throughline
`;

const fish = `function __throughline_complete
  set -l words (commandline -opc)
  throughline __complete -- $words[2..-1] (commandline -ct) 2> /dev/null
end
complete -c throughline -a '(__throughline_complete)'
`;

const scripts: ReadonlyMap<string, string> = new Map([
  ["bash", bash],
  ["zsh", zsh],
  ["fish", fish],
]);

export async function run({ output }: CommandContext, input: CommandInput): Promise<number> {
  const [shell = ""] = input.arguments;
  const script = scripts.get(shell);
  if (script === undefined) throw unknownShell(shell);
  if (output.isJson) await output.object({ kind: "completion", shell, script });
  else await output.line(script.trimEnd());
  return 0;
}

function unknownShell(shell: string): ThroughlineError {
  const nearest = nearestName(shell, [...scripts.keys()]);
  const hint = nearest === null ? "" : ` Did you mean ${nearest}?`;
  return usageError(`completion knows ${[...scripts.keys()].join(", ")}, not ${quote(shell)}.${hint}`, { shell });
}
