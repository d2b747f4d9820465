package scaleway

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Keys returns the SSH keys of the project, which the provider injects into its servers, ordered as the provider lists
// them: oldest first. Without the project id the provider denies the list to a key of one project.
func (c *Client) Keys(ctx context.Context) ([]inventory.SSHKey, error) {
	found, err := paged(func(page int32) ([]*iam.SSHKey, int, error) {
		resp, err := ask(ctx, c, sshKeys, func(o scw.RequestOption) (*iam.ListSSHKeysResponse, error) {
			return c.iam.ListSSHKeys(&iam.ListSSHKeysRequest{ProjectID: &c.project, Page: &page}, o)
		})
		if err != nil {
			return nil, 0, err
		}
		return resp.SSHKeys, int(resp.TotalCount), nil
	}, func(k *iam.SSHKey) string { return k.ID })
	if err != nil {
		return nil, fmt.Errorf("list the SSH keys of project %s: %w", c.project, err)
	}
	var out []inventory.SSHKey
	for _, k := range found {
		if k.ProjectID == "" || k.ProjectID == c.project {
			out = append(out, toKey(k))
		}
	}
	return out, nil
}

// RegisterKey makes sure that the project has an SSH key and returns it. Keys are the same if type and base64 are: the
// comment and the name are free text. A key that is registered already keeps its name.
func (c *Client) RegisterKey(ctx context.Context, name, publicKey string) (inventory.SSHKey, error) {
	wanted := material(publicKey)
	if wanted == "" {
		return inventory.SSHKey{}, fmt.Errorf("register the SSH key %s: it is not a public key in OpenSSH format", name)
	}
	found, there, err := c.registered(ctx, wanted)
	if err != nil || there {
		return found, err
	}
	created, err := ask(ctx, c, sshKeys, func(o scw.RequestOption) (*iam.SSHKey, error) {
		return c.iam.CreateSSHKey(&iam.CreateSSHKeyRequest{Name: name, PublicKey: publicKey, ProjectID: c.project}, o)
	})
	if err == nil && material(created.PublicKey) == wanted {
		return toKey(created), nil
	}
	// It may have been registered, by this request or by another run.
	if found, there, lerr := c.registered(ctx, wanted); lerr == nil && there {
		return found, nil
	}
	if err == nil {
		return inventory.SSHKey{}, fmt.Errorf("register the SSH key %s in project %s: Scaleway returned another key", name, c.project)
	}
	return inventory.SSHKey{}, fmt.Errorf("register the SSH key %s in project %s: %w", name, c.project, err)
}

// registered finds a key of the project. A disabled key is an error: servers do not get it.
func (c *Client) registered(ctx context.Context, wanted string) (inventory.SSHKey, bool, error) {
	all, err := c.Keys(ctx)
	if err != nil {
		return inventory.SSHKey{}, false, err
	}
	same := slices.DeleteFunc(all, func(k inventory.SSHKey) bool { return k.Public != wanted })
	if len(same) == 0 {
		return inventory.SSHKey{}, false, nil
	}
	if i := slices.IndexFunc(same, func(k inventory.SSHKey) bool { return !k.Disabled }); i >= 0 {
		return same[i], true, nil
	}
	return inventory.SSHKey{}, false, fmt.Errorf("the SSH key %s (%s) of project %s is disabled; fix: enable it in the Scaleway console",
		same[0].Name, same[0].ID, c.project)
}

// RemoveKey removes an SSH key from the project. Already removed: nothing to do. Servers keep the key until they are
// rebooted or reinstalled through the provider.
func (c *Client) RemoveKey(ctx context.Context, id string) error {
	_, err := ask(ctx, c, sshKeys, func(o scw.RequestOption) (struct{}, error) {
		return struct{}{}, c.iam.DeleteSSHKey(&iam.DeleteSSHKeyRequest{SSHKeyID: id}, o)
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	all, lerr := c.Keys(ctx)
	if lerr == nil && !slices.ContainsFunc(all, func(k inventory.SSHKey) bool { return k.ID == id }) {
		return nil
	}
	return fmt.Errorf("remove the SSH key %s from project %s: %w", id, c.project, err)
}

// toKey drops what only the SDK needs, and the comment.
func toKey(k *iam.SSHKey) inventory.SSHKey {
	return inventory.SSHKey{ID: k.ID, Name: k.Name, Public: material(k.PublicKey), Project: k.ProjectID, Disabled: k.Disabled}
}

// material returns type and base64 of a public key, by which keys are compared; empty: it is not one.
func material(public string) string {
	fields := strings.Fields(public)
	if len(fields) < 2 || strings.Contains(fields[0], "=") {
		return ""
	}
	if blob, err := base64.StdEncoding.DecodeString(fields[1]); err != nil || len(blob) == 0 {
		return ""
	}
	return fields[0] + " " + fields[1]
}
