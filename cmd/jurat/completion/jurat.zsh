#compdef jurat
# Completion of jurat for zsh: source <(jurat completion zsh), after compinit
_jurat() {
    local line value about
    local -a found
    while IFS= read -r line; do
        value=${line%%$'\t'*} about=
        [[ $line == *$'\t'* ]] && about=${line#*$'\t'}
        case $value in
        :files) _files ;;
        :folders) _files -/ ;;
        *) found+=("${value//:/\\:}${about:+:$about}") ;;
        esac
    done < <("${words[1]}" completion --words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( $#found )) && _describe -t values jurat found
}
compdef _jurat jurat
