// Fills a TLS folder from the authority on this machine.
#ifndef REGATTA_CLIENT_CLI_ISSUE_FOLDER_H_
#define REGATTA_CLIENT_CLI_ISSUE_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/certs/authority.h"

namespace regatta::cli {

// A fresh key and its certificate, and what the lab trusts. Replaces what is in
// the folder as base/certs/tls_folder.h says, but for other authorities of the
// same lab, which stay.
absl::Status IssueFolder(Authority* authority, const std::string& dir,
                         const Identity& identity, absl::Time now,
                         absl::Duration life, const std::string& by);

// The same unless the folder has this identity already, good for another half
// of kCertificateLife.
absl::Status EnsureFolder(Authority* authority, const std::string& dir,
                          const Identity& identity, absl::Time now,
                          const std::string& by);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_ISSUE_FOLDER_H_
