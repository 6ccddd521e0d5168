# Completion of jurat for fish: jurat completion fish > ~/.config/fish/completions/jurat.fish
function __jurat_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    $words[1] completion --words -- $words[2..-1] $typed 2>/dev/null | while read -l line
        switch $line
            case ':files'
                __fish_complete_path $typed
            case ':folders'
                __fish_complete_directories $typed
            case '*'
                echo $line
        end
    end
end
complete -c jurat -f -a '(__jurat_complete)'
