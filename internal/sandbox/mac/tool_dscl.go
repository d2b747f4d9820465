package mac

import (
	"fmt"
	"strings"
)

// dsError is an error of the directory as dscl reports it: its number also determines the exit status.
type dsError int

// Errors of the directory.
const (
	dsAuthFailed  dsError = 14090
	dsNotAllowed  dsError = 14120
	dsNoAttribute dsError = 14134
	dsNoRecord    dsError = 14136
)

func (e dsError) name() string {
	switch e {
	case dsAuthFailed:
		return "eDSAuthFailed"
	case dsNotAllowed:
		return "eDSPermissionError"
	case dsNoAttribute:
		return "eDSAttributeNotFound"
	}
	return "eDSRecordNotFound"
}

func (e dsError) status() int { return int(e) % 256 }

const wrongPasswordSwitch = "dscl-wrong-password-exit"

// tallyMark is in the record of a locked account.
const tallyMark = ";tally;"

func dscl(p *proc) int {
	args := p.args()
	if len(args) < 2 || args[0] != "." && args[0] != "/Local/Default" {
		return p.unmodelled(joined(args[:min(1, len(args))])) // the rest may contain a password
	}
	verb, rest := strings.TrimPrefix(args[1], "-"), args[2:]
	switch {
	case verb == "read" && len(rest) >= 2:
		return p.readRecord(rest[0], rest[1:])
	case verb == "authonly" && len(rest) == 2:
		return p.authOnly(rest[0], rest[1])
	case verb == "delete" && len(rest) == 3 && rest[1] == "AuthenticationAuthority" && rest[2] == tallyMark:
		return p.resetTally(rest[0])
	case verb == "passwd" && len(rest) == 2:
		return p.setPassword(rest[0], rest[1])
	}
	return p.unmodelled(args[0] + " " + args[1])
}

// dsFail reports an error of the directory.
func (p *proc) dsFail(e dsError) int {
	_, _ = fmt.Fprintf(p.stderr, "<dscl_cmd> DS Error: -%d (%s)\n", int(e), e.name())
	return e.status()
}

// record finds the account of a path of the directory.
func (p *proc) record(path string) (user, bool) {
	name, ok := strings.CutPrefix(path, "/Users/")
	if !ok {
		return user{}, false
	}
	return p.session.user(name)
}

func (p *proc) readRecord(path string, keys []string) int {
	who, ok := p.record(path)
	if !ok {
		return p.dsFail(dsNoRecord)
	}
	for _, key := range keys {
		value, ok, err := p.attribute(who, key)
		switch {
		case err != nil:
			return p.fail(exitFailed, "%s", why(err))
		case !ok:
			p.printf("No such key: %s\n", key)
		case key == policyDataKey: // an attribute of the record's own kind, with several lines of text
			p.printf("dsAttrTypeNative:%s:\n %s\n", key, value)
		default:
			p.printf("%s: %s\n", key, value)
		}
	}
	return 0
}

func (p *proc) attribute(who user, key string) (value string, ok bool, err error) {
	switch key {
	case "RecordName":
		return who.name, true, nil
	case "UniqueID":
		return fmt.Sprint(who.uid), true, nil
	case "PrimaryGroupID":
		return fmt.Sprint(who.groups[0]), true, nil
	case "NFSHomeDirectory":
		return who.home, true, nil
	case "UserShell":
		return who.shell, true, nil
	case policyDataKey:
		return p.policyData(who)
	case "AuthenticationAuthority":
		if who.uid != loginUID {
			return "", false, nil
		}
		value = ";ShadowHash;HASHLIST:<SALTED-SHA512-PBKDF2,SRP-RFC5054-4096-SHA512-PBKDF2> ;SecureToken;"
		err = p.visit(func(v *visit) error {
			a, err := v.account()
			if err == nil && v.locked(a) {
				value += " " + tallyMark
			}
			return err
		})
		return value, true, err
	}
	return "", false, nil
}

// policyDataKey names the directory's counters and dates of an account. Only root may read it.
const policyDataKey = "accountPolicyData"

// factoryPasswordSet is when the password of a new machine was set, in seconds since 1970.
const factoryPasswordSet = 1700000000.25

func (p *proc) policyData(who user) (value string, ok bool, err error) {
	if who.uid != loginUID || p.user.uid != 0 {
		return "", false, nil
	}
	err = p.visit(func(v *visit) error {
		a, err := v.account()
		set := ""
		switch {
		case v.switched(setTimeSwitch) != "told":
		case a.Set.IsZero():
			set = policyDate("passwordLastSetTime", factoryPasswordSet)
		default:
			set = policyDate("passwordLastSetTime", float64(a.Set.UnixMicro())/1e6)
		}
		value = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
` + policyDate("creationTime", factoryPasswordSet) +
			fmt.Sprintf("\t<key>failedLoginCount</key>\n\t<integer>%d</integer>\n", a.Tally) + set + "</dict>\n</plist>"
		return err
	})
	return value, true, err
}

func policyDate(key string, at float64) string {
	return fmt.Sprintf("\t<key>%s</key>\n\t<real>%f</real>\n", key, at)
}

// authOnly only checks a password.
func (p *proc) authOnly(name, password string) int {
	who, known := p.session.user(name)
	var right bool
	status := dsNoRecord.status()
	err := p.visit(func(v *visit) (err error) {
		if known {
			right, err = v.authenticate("dscl", who, password)
			_, _ = fmt.Sscan(v.switched(wrongPasswordSwitch), &status)
		}
		return err
	})
	switch {
	case err != nil:
		return p.fail(exitFailed, "%s", why(err))
	case right:
		return 0
	}
	failed := dsAuthFailed
	if !known {
		failed = dsNoRecord
	}
	_, _ = fmt.Fprintf(p.stderr, "Authentication for node /Local/Default failed. (-%d, %s)\n", int(failed), failed.name())
	return status
}

// changeRecord changes the login user's account with root's rights.
func (p *proc) changeRecord(path string, change func(*visit, *account) bool) int {
	who, ok := p.record(path)
	switch {
	case !ok:
		return p.dsFail(dsNoRecord)
	case p.user.uid != 0:
		return p.dsFail(dsNotAllowed)
	case who.uid != loginUID:
		return p.unmodelled(path)
	}
	done := false
	err := p.visit(func(v *visit) error {
		a, err := v.account()
		if err != nil {
			return err
		}
		done = change(v, &a)
		return v.keepAccount(a)
	})
	switch {
	case err != nil:
		return p.fail(exitFailed, "%s", why(err))
	case !done:
		return p.dsFail(dsNoAttribute)
	}
	return 0
}

// resetTally unlocks an account.
func (p *proc) resetTally(path string) int {
	return p.changeRecord(path, func(v *visit, a *account) bool {
		was := v.locked(*a)
		a.Tally = 0
		return was
	})
}

func (p *proc) setPassword(path, password string) int {
	if password == "" {
		return p.unmodelled("an empty password")
	}
	return p.changeRecord(path, func(v *visit, a *account) bool {
		v.setPassword(a, password)
		return true
	})
}

// pwpolicy removes a user's policies with their counters.
func pwpolicy(p *proc) int {
	args := p.args()
	if len(args) != 3 || args[0] != "-u" || args[2] != "-clearaccountpolicies" {
		return p.unmodelled(joined(args))
	}
	p.printf("Clearing account policies for user <%s>\n", args[1])
	return p.changeRecord("/Users/"+args[1], func(_ *visit, a *account) bool {
		a.Tally = 0
		return true
	})
}

func joined(words []string) string { return strings.Join(words, " ") }
