package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Boot returns what names the host's present boot: after a restart it is another text.
func (c *Conn) Boot(ctx context.Context) (string, error) {
	a, err := c.own(ctx, "boot")
	if err != nil {
		return "", fmt.Errorf("read which boot this is: %w", err)
	}
	return strings.TrimSpace(a.Stdout), nil
}

// Restart restarts the host as its user would. The connection ends with it, and a lost one is not an error: only another Boot shows that the host
// was restarted.
func (c *Conn) Restart(ctx context.Context) error {
	_, err := c.own(ctx, "restart")
	if lost := (*Error)(nil); errors.As(err, &lost) && lost.Code == codeConnectionLost && ctx.Err() == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restart the host: %w", err)
	}
	return nil
}
