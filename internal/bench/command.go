package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// versionMilliseconds is the budget of a start.
const versionMilliseconds = 50.0

// version measures how long the command takes to start and end.
func (b *bench) version(ctx context.Context) ([]row, error) {
	binary, err := b.binary()
	if err != nil {
		return nil, err
	}
	b.say("version: %d starts", b.starts)
	var walls []time.Duration
	for range b.starts {
		_, u, err := execute(ctx, nil, nil, binary, "version")
		if err != nil {
			return nil, err
		}
		walls = append(walls, u.wall)
	}
	info, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	return []row{judged(fmt.Sprintf("macfleet version, %d starts", b.starts), float64(medianTime(walls).Microseconds())/1000, versionMilliseconds, " ms"),
		judged("  the binary", megabytes(info.Size()), 60, " MB")}, nil
}
