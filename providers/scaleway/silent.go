package scaleway

import "github.com/scaleway/scaleway-sdk-go/logger"

// silent replaces the SDK's logger. With SCW_DEBUG that one writes every answer to standard error, with the
// sudo passwords in it; everything that matters comes back as an error, and requests are in macfleet's own log.
type silent struct{}

func (silent) Debugf(string, ...any)          {}
func (silent) Infof(string, ...any)           {}
func (silent) Warningf(string, ...any)        {}
func (silent) Errorf(string, ...any)          {}
func (silent) ShouldLog(logger.LogLevel) bool { return false }

// The SDK keeps its logger in a variable without a lock, so it is set before anything can use it.
func init() { logger.SetLogger(silent{}) }
