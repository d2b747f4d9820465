package load

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/macfleet/macfleet/fleet"
)

// Checks of texts as GitHub and its runner write them. Each returns what is wrong with a text, or "".

var (
	ownerPattern         = regexp.MustCompile(`^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)
	repositoryPattern    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	appPattern           = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)
	installationPattern  = regexp.MustCompile(`^[0-9]{1,20}$`)
	runnerVersionPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,5})(\.(0|[1-9][0-9]{0,5})){2}$`)
)

func isOwner(text string) bool { return len(text) <= 39 && ownerPattern.MatchString(text) }

func isRepository(text string) bool {
	owner, name, _ := strings.Cut(text, "/")
	return isOwner(owner) && repositoryPattern.MatchString(name) && name != "." && name != ".."
}

// addressed returns the owner and the repository that an address at GitHub leads to, as a browser or git shows it. Either may
// be "". Of a text that is not an address it returns the text's own parts.
func addressed(text string) (owner, repository string) {
	if _, rest, isURL := strings.Cut(text, "://"); isURL {
		_, text, _ = strings.Cut(rest, "/")
	} else if _, rest, isRemote := strings.Cut(text, ":"); isRemote {
		text = rest
	} else if host, rest, _ := strings.Cut(text, "/"); strings.Contains(host, ".") {
		text = rest
	}
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		text = text[:i]
	}
	parts := append(strings.Split(strings.Trim(text, "/"), "/"), "")
	switch parts[0] {
	case "enterprises":
		return "", ""
	case "orgs", "organizations":
		parts = []string{parts[1], ""}
	}
	if !isOwner(parts[0]) {
		return "", ""
	}
	if full := parts[0] + "/" + strings.TrimSuffix(parts[1], ".git"); isRepository(full) {
		return parts[0], full
	}
	return parts[0], ""
}

func organizationFault(text string) string {
	switch owner, repository := addressed(text); {
	case isOwner(text):
		return ""
	case strings.Contains(text, "/enterprises/"):
		return "this is an enterprise, and macfleet registers runners with an organization or a repository."
	case repository != "":
		return "this is a repository. Write repository = " + quoted(repository) + ", or organization = " + quoted(owner) + "."
	case owner != "":
		return "write only the name." + didYouMean(owner)
	}
	return "a name has at most 39 letters, digits and single hyphens, and starts and ends with a letter or digit."
}

func repositoryFault(text string) string {
	switch owner, repository := addressed(text); {
	case isRepository(text):
		return ""
	case repository != "":
		return "write only the name." + didYouMean(repository)
	case owner != "":
		return "the name of the repository is missing. For all repositories of " + owner + " write organization = " + quoted(owner) + "."
	}
	return "an owner has at most 39 letters, digits and single hyphens; the name of a repository has letters, digits, dots, hyphens and underscores."
}

func githubHostFault(text string) string {
	host := strings.ToLower(text)
	if _, rest, isURL := strings.Cut(host, "://"); isURL {
		host = rest
	}
	host, _, _ = strings.Cut(host, "/")
	host = host[strings.LastIndex(host, "@")+1:]
	host, _, _ = strings.Cut(host, ":")
	for _, prefix := range []string{"www.", "api."} {
		if better := strings.TrimPrefix(host, prefix); cloud(better) {
			host = better
		}
	}
	switch {
	case host == text && fleet.IsDomain(text):
		return ""
	case fleet.IsDomain(host):
		return "write only the host, in lower case, without scheme, port and path." + didYouMean(host)
	}
	return "this is not a host name."
}

// nameFault is the check of a text that GitHub and its runner take as it is.
func nameFault(text string, longest int) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "it is empty"
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return "it contains a control character"
	case strings.TrimSpace(text) != text:
		return "it starts or ends with a space"
	case utf8.RuneCountInString(text) > longest:
		return "it is too long"
	}
	return ""
}

func groupFault(text string) string { return nameFault(text, 128) }

func labelFault(text string) string {
	if strings.Contains(text, ",") {
		return "a comma separates labels; write each label as its own text"
	}
	return nameFault(text, 256)
}

func workFolderFault(text string) string {
	switch why := nameFault(text, 512); {
	case why != "":
		return why
	case strings.HasPrefix(text, "~"):
		return "~ is not expanded; write a path relative to the runner's folder, or an absolute one"
	case slices.Contains(strings.Split(text, "/"), ".."):
		return `it contains ".."`
	case strings.Trim(text, "/.") == "":
		return "jobs need a separate folder"
	}
	return ""
}

func runnerVersionFault(text string) string {
	better := strings.TrimPrefix(strings.TrimSpace(text), "v")
	switch {
	case runnerVersionPattern.MatchString(text):
		return ""
	case runnerVersionPattern.MatchString(better):
		return "write only the number." + didYouMean(better)
	}
	return "it has three numbers."
}
