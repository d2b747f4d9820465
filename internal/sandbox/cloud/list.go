package cloud

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

const (
	defaultPageSize = 20
	maxPageSize     = 100
)

// page returns the page of all that the request's page and page_size select: empty past the end, never
// null.
func page[T any](all []T, query url.Values) ([]T, *failure) {
	number, failed := positive(query, "page", 1)
	if failed != nil {
		return nil, failed
	}
	size, failed := positive(query, "page_size", defaultPageSize)
	if failed != nil {
		return nil, failed
	}
	size = min(size, maxPageSize)
	// Compared by division: a huge page number must not overflow.
	if number-1 > len(all)/size {
		return []T{}, nil
	}
	from := min((number-1)*size, len(all))
	return append([]T{}, all[from:min(from+size, len(all))]...), nil
}

func positive(query url.Values, name string, otherwise int) (int, *failure) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < 1 {
		return 0, invalidArgument(name, "constraint", fmt.Sprintf("%q is not a positive whole number", text))
	}
	return value, nil
}

type serverList struct {
	TotalCount int      `json:"total_count"`
	Servers    []Server `json:"servers"`
}

func (a *API) listServers(r *http.Request) (any, *failure) {
	query := r.URL.Query()
	project := query.Get("project_id")
	if failed := a.mayList(project); failed != nil {
		return nil, failed
	}
	descending := false
	switch order := query.Get("order_by"); order {
	case "", "created_at_asc":
	case "created_at_desc":
		descending = true
	default:
		return nil, invalidArgument("order_by", "constraint", fmt.Sprintf("%q is neither created_at_asc nor created_at_desc", order))
	}
	servers, err := a.state.all()
	if err != nil {
		return nil, internal(err)
	}
	own, failed := a.lacking()
	if failed != nil {
		return nil, failed
	}
	if own.Project != "" && project == "" {
		project = own.Project
	}
	zone, organization := r.PathValue("zone"), query.Get("organization_id")
	servers = slices.DeleteFunc(servers, func(s Server) bool {
		return s.Zone != zone || project != "" && s.ProjectID != project || organization != "" && s.OrganizationID != organization
	})
	slices.SortFunc(servers, func(x, y Server) int {
		// The id orders servers of the same age, so that pages are stable.
		order := cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID))
		if descending {
			return -order
		}
		return order
	})
	shown, failed := page(servers, query)
	if failed != nil {
		return nil, failed
	}
	for i := range shown {
		shown[i] = shown[i].sealed()
	}
	return serverList{len(servers), shown}, nil
}
