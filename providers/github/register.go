package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/macfleet/macfleet/internal/secret"
)

// Registration is what a runner registers with.
type Registration struct {
	URL     string       // the scope's web address
	Token   secret.Value // for as many runners as register until it expires; zero: Encoded is set
	Encoded secret.Value // the finished configuration of one runner for one job, in base64; zero: Token is set
	Expires time.Time    // of Token
}

// Register returns what runners of the scope register with. It serves many runners for an hour, so one per run is enough.
func (c *Client) Register(ctx context.Context) (Registration, error) {
	var answer struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	if _, err := c.ask(ctx, runnersOf, http.MethodPost, c.scope.path("actions/runners/registration-token"), nil, &answer); err != nil {
		return Registration{}, fmt.Errorf("get a registration token for the %s: %w", c.scope.thing(), err)
	}
	token, err := secret.New(answer.Token)
	if err != nil {
		return Registration{}, strange("a registration token that is empty")
	}
	return Registration{URL: c.scope.Web(), Token: token, Expires: answer.Expires}, nil
}

// RegisterJIT registers one runner for one job, and returns its finished configuration. The group is by id.
func (c *Client) RegisterJIT(ctx context.Context, name, group string, labels []string, workFolder string) (Registration, error) {
	id, err := strconv.ParseInt(group, 10, 64)
	if err != nil {
		return Registration{}, fmt.Errorf("register runner %s for one job: group %q is not an id; fix: give the group's number", name, group)
	}
	body := struct {
		Name       string   `json:"name"`
		Group      int64    `json:"runner_group_id"`
		Labels     []string `json:"labels"`
		WorkFolder string   `json:"work_folder,omitempty"`
	}{name, id, append([]string{}, labels...), workFolder}
	var answer struct {
		Encoded string `json:"encoded_jit_config"`
	}
	if _, err := c.ask(ctx, runnersOf, http.MethodPost, c.scope.path("actions/runners/generate-jitconfig"), body, &answer); err != nil {
		return Registration{}, fmt.Errorf("register runner %s for one job in the %s: %w", name, c.scope.thing(), err)
	}
	encoded, err := secret.New(answer.Encoded)
	if err != nil {
		return Registration{}, strange("a configuration of a runner that is empty")
	}
	return Registration{URL: c.scope.Web(), Encoded: encoded}, nil
}
