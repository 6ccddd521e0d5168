# Completion of jurat for bash: source <(jurat completion bash)
_jurat() {
    local current=${COMP_LINE:0:COMP_POINT} words line value
    COMPREPLY=()
    # bash splits words at = and :, and the program wants them whole.
    read -r -a words <<<"$current"
    [[ $current == *[[:space:]] ]] && words+=('')
    local whole=${words[-1]} part=${COMP_WORDS[COMP_CWORD]}
    [[ $part == = ]] && part=''
    while IFS= read -r line; do
        value=${line%%$'\t'*}
        case $value in
        :files)
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$part")
            ;;
        :folders)
            compopt -o filenames 2>/dev/null
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$part")
            ;;
        *)
            # What bash holds for earlier words stays on the line.
            COMPREPLY+=("${value#"${whole%"$part"}"}")
            ;;
        esac
    done < <("${COMP_WORDS[0]}" completion --words -- "${words[@]:1}" 2>/dev/null)
}
complete -F _jurat jurat
