// The flag --log-format, the same for every daemon.
#ifndef REGATTA_BASE_LOG_FLAG_H_
#define REGATTA_BASE_LOG_FLAG_H_

#include <string>

#include "CLI/CLI.hpp"
#include "base/log.h"

namespace regatta {

// Takes effect where the flag is read; without it the format is the one that
// the process which started this one had.
inline void AddLogFormatFlag(CLI::App* app) {
  InheritLogFormat();
  app->add_option_function<std::string>(
         "--log-format",
         [](const std::string& name) {
           SetLogFormat(name == "json" ? LogFormat::kJson : LogFormat::kText);
         },
         "How lines of the log are written: text, or json, one object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORMAT")
      ->default_str("text");
}

}  // namespace regatta

#endif  // REGATTA_BASE_LOG_FLAG_H_
