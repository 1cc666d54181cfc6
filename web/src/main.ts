// SPDX-License-Identifier: MIT
//
// Starts the page.
import 'uplot/dist/uPlot.min.css';
import './ui/theme.css';
import './ui/layout.css';
import './ui/views.css';
import './ui/pages.css';
import { Shell } from './ui/shell';
import { start_theme } from './ui/theme';

start_theme();
const root = document.getElementById('app');
if (root) void new Shell(root).start();
