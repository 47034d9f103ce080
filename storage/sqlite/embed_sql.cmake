# Writes OUTPUT, a C++ source that holds every file of SQL_FILES as one migration
# each, in the order given: kMigrations of migrations.h.
set(text "// Made by embed_sql.cmake.\n#include \"storage/sqlite/migrations.h\"\n\nnamespace regatta::sqlite {\nnamespace {\n\nconstexpr const char* kScripts[] = {\n")
foreach(file ${SQL_FILES})
  file(READ ${file} sql)
  string(APPEND text "R\"SQL(${sql})SQL\",\n")
endforeach()
string(APPEND text "};\n\n}  // namespace\n\nabsl::Span<const char* const> Migrations() { return kScripts; }\n\n}  // namespace regatta::sqlite\n")
file(WRITE ${OUTPUT} "${text}")
