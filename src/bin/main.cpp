#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <string>
#include <vigil/vigil.hpp>

int main(int argc, char** argv) {
    CLI::App app{"vigil: time-ordered queues on an event loop", "vigil"};
    app.set_version_flag("--version", "vigil " + std::string(vigil::version()));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    std::cout << app.help();
    return 0;
}
