#include <nlohmann/json.hpp>

#include "base/decimal.h"
#include "client/cli/command.h"
#include "proto/outcome_names.h"
#include "proto/policy_limits.h"

namespace regatta::cli {

CLI::Validator Utf8Text() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        try {
          nlohmann::json(text).dump();
          return "";
        } catch (const nlohmann::json::exception&) {
          return "this is no UTF-8 text";
        }
      },
      "");
}

CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return text.empty() ? "is empty; leave it out, or name one" : "";
      },
      "");
}

CLI::Option* AddNumber(CLI::App* command, const std::string& name,
                       double* value, double min, double max,
                       const std::string& help) {
  return command
      ->add_option_function<std::string>(
          name,
          [=](const std::string& text) {
            if (!ParseDecimal(text, value) || *value < min || *value > max) {
              throw CLI::ValidationError(
                  name, absl::StrCat("'", text, "' is no number from ", min,
                                     " to ", max));
            }
          },
          help)
      ->type_name("NUMBER");
}

void AddServerFlag(CLI::App* command, ServerFlags* flags) {
  command
      ->add_option(
          "--server", flags->server,
          "Address of the server, HOST:PORT. Default: $REGATTA_SERVER, else "
          "what `regatta up` left in its state folder, else 127.0.0.1:7470")
      ->check(NotEmpty());
  command
      ->add_option("--tls", flags->tls,
                   "Folder of your certificate, made by `regatta certs`. "
                   "Default: $REGATTA_TLS, else what `regatta up` left")
      ->type_name("DIR")
      ->check(NotEmpty());
  command->add_flag("--insecure-plaintext", flags->insecure_plaintext,
                    "Without a certificate, also talk to a server on another "
                    "machine; or $REGATTA_INSECURE_PLAINTEXT");
}

void AddJsonFlag(CLI::App* command, bool* json) {
  command->add_flag("--json", *json,
                    "Print one JSON document on standard output, nothing else");
}

CLI::Option* AddWorkloadArgument(CLI::App* command, std::string* workload) {
  return command
      ->add_option("workload", *workload,
                   "What to compute: an operator call such as "
                   "'matmul(m=512,n=512,k=512)' (see `regatta ops`) or a "
                   "tensor expression with `where`")
      ->check(Utf8Text())
      ->required();
}

void AddPolicyFlags(CLI::App* command, PolicyFlags* flags) {
  AddWholeNumber(command, "--threads", &flags->threads, 1, kMaxThreads,
                 "Threads that the kernel uses (count)")
      ->default_str("1");
  command
      ->add_option("--cache", flags->cache,
                   "Operands before each timed call: warm (as the previous "
                   "call left them) or cold (evicted)")
      ->check(CLI::IsMember({"warm", "cold"}))
      ->capture_default_str();
}

v1::Policy PolicyFlags::ToProto() const {
  v1::Policy policy;
  policy.set_threads(threads);
  policy.set_cache(*ParseCacheState(cache));
  return policy;
}

}  // namespace regatta::cli
