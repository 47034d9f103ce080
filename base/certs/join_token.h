// What lets a board or a person into a lab once: a secret of 128 bits, and the
// fingerprint of the lab's authority, so that the joiner gives the secret to
// nobody else. As text, `rgt1-SECRET-FINGERPRINT`, both in hexadecimal.
#ifndef REGATTA_BASE_CERTS_JOIN_TOKEN_H_
#define REGATTA_BASE_CERTS_JOIN_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace regatta {

struct JoinToken {
  std::string secret;          // 32 hexadecimal digits
  std::string ca_fingerprint;  // Certificate::Fingerprint of the authority

  // From the system's entropy.
  static JoinToken Make(std::string ca_fingerprint);
  // InvalidArgument, without quoting it, for what is no token.
  static absl::StatusOr<JoinToken> Parse(std::string_view text);
  // The same of a secret that should stand on no command line: `@FILE` names
  // the file that it is in, "-" is standard input, up to its end; what is
  // neither is the token. Space around it counts for nothing.
  // FailedPrecondition names the file and the system's reason.
  static absl::StatusOr<JoinToken> Read(const std::string& where);
  std::string Text() const;
  // What the authority keeps: the secret's SHA-256.
  std::string Id() const;
};

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_JOIN_TOKEN_H_
