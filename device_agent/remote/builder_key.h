// The keys by which boards know builders: a builder's own, kept in its state
// folder, and those that a board's operator names. In text a public key is 64
// hexadecimal digits.
//
// Free functions.
#ifndef REGATTA_DEVICE_AGENT_REMOTE_BUILDER_KEY_H_
#define REGATTA_DEVICE_AGENT_REMOTE_BUILDER_KEY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ed25519.h"

namespace regatta {

// The key in STATE_DIR/builder.key, made when there is none; the file is its
// owner's alone (mode 0600). FailedPrecondition when others may read it,
// DataLoss when it holds no key; both name the file.
absl::StatusOr<SigningKey> LoadOrMakeBuilderKey(const std::string& state_dir);

// "ed25519:KEY", for people and records.
std::string KeyName(const std::string& public_key);

// Public keys (32 bytes each) that `--trust-builder` names: each text is a key
// or a file with one on every line; what follows '#' is a note. InvalidArgument
// names what is neither.
absl::StatusOr<std::vector<std::string>> ParseTrustedBuilders(
    const std::vector<std::string>& texts);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_REMOTE_BUILDER_KEY_H_
